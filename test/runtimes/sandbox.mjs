/** An endless loop in a child process is killed at its deadline, and the error says where it hung. */
import { sandboxed } from "curfew";
import { loop } from "./sandbox-job.mjs";
import { check, openStore } from "./store.mjs";

const engine = await openStore();
engine.work({ processors: [sandboxed(loop, new URL("./sandbox-loop.mjs", import.meta.url))] });
const job = await engine.enqueue(loop, {});
check("result", await job.result({ within: "50s" }), 2);
const { errors } = await job.load();
check("killed", errors[0].forced, true);
if (!/spin/.test(errors[0].stack ?? ""))
  throw new Error(`the stack does not name the loop: ${errors[0].stack}`);
await engine.close();
console.log("ok");
