/** Koa with a worker in the same process. WORK=off leaves the jobs to worker.ts. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { openEngine } from "curfew";
import Koa from "koa";
import { processors, welcome } from "../jobs.ts";

const engine = await openEngine({ store: process.env.STORE ?? "sqlite:shop.db" });
const worker = process.env.WORK === "off" ? undefined : engine.work({ processors, drain: "20s" });

const app = new Koa();

app.use(async (context) => {
  const { method, path } = context;
  const [, id] = /^\/jobs\/([\w-]+)$/.exec(path) ?? [];
  if (method === "POST" && path === "/users") {
    // Answers when the job is durable, and does not wait for the mail.
    const { email, takes } = (await json(context.req)) as { email: string; takes?: number };
    const job = await engine.enqueue(welcome, { to: email, takes });
    context.status = 202;
    context.body = { job: job.id };
  } else if (method === "GET" && id !== undefined) {
    const job = await engine.load(id);
    context.status = job ? 200 : 404;
    context.body = { state: job?.state ?? null, result: job?.result ?? null };
  } else if (method === "GET" && path === "/health") {
    await engine.store.clock(); // rejects if the database does not answer: 500
    const status = worker?.status() ?? { ready: true };
    context.status = status.ready ? 200 : 503;
    context.body = status;
  }
});

const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1");
await once(server, "listening");
console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`);

/** The worker takes no more jobs while open requests get their replies; the engine closes last. */
async function stop(): Promise<void> {
  const closed = once(server, "close");
  server.close();
  await Promise.all([closed, worker?.close()]);
  await engine.close();
}
for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => void stop());
