/** A server, a worker that reaches it over HTTP, and a producer. */
import { defineJob, processor, unchecked } from "curfew";
import { openClient } from "curfew/client";
import { createServer, listen } from "curfew/server";
import { check, openStore } from "./store.mjs";

const greet = defineJob({ type: "greet", payload: unchecked(), result: unchecked() });
const engine = await openStore();
const server = await listen(createServer(engine), { port: 0 });
const client = openClient({ url: server.url });
client.work({ processors: [processor(greet, ({ payload }) => `hello ${payload.name}`)] });
const job = await client.enqueue(greet, { name: "Ada" });
check("result", await job.result({ within: "30s" }), "hello Ada");
await client.close();
await server.close();
await engine.close();
console.log("ok");
