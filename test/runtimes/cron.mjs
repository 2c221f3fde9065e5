/** A cron fires each second. */
import { defineJob, processor, unchecked } from "curfew";
import { check, openStore, until } from "./store.mjs";

const tidy = defineJob({ type: "tidy", payload: unchecked() });
let runs = 0;
const engine = await openStore();
engine.work({ processors: [processor(tidy, () => void runs++)] });
await engine.crons.put("tidy", { cron: "* * * * * *", job: tidy, payload: null });
await until(() => runs >= 2);
check("crons", (await engine.crons.list()).length, 1);
await engine.close();
console.log("ok");
