/** Hono with a worker in the same process. WORK=off leaves the jobs to worker.ts. */
import { once } from "node:events";
import { serve } from "@hono/node-server";
import { openEngine } from "curfew";
import { Hono } from "hono";
import { processors, welcome } from "../jobs.ts";

const engine = await openEngine({ store: process.env.STORE ?? "sqlite:shop.db" });
const worker = process.env.WORK === "off" ? undefined : engine.work({ processors, drain: "20s" });

const app = new Hono();

// Answers when the job is durable, and does not wait for the mail.
app.post("/users", async (context) => {
  const { email, takes } = await context.req.json<{ email: string; takes?: number }>();
  const job = await engine.enqueue(welcome, { to: email, takes });
  return context.json({ job: job.id }, 202);
});

app.get("/jobs/:id", async (context) => {
  const job = await engine.load(context.req.param("id"));
  return context.json({ state: job?.state ?? null, result: job?.result ?? null }, job ? 200 : 404);
});

app.get("/health", async (context) => {
  await engine.store.clock(); // rejects if the database does not answer: 500
  const status = worker?.status() ?? { ready: true };
  return context.json(status, status.ready ? 200 : 503);
});

const server = serve(
  { fetch: app.fetch, port: Number(process.env.PORT ?? 3000), hostname: "127.0.0.1" },
  ({ port }) => console.log(`listening on http://127.0.0.1:${port}`),
);

/** The worker takes no more jobs while open requests get their replies; the engine closes last. */
async function stop(): Promise<void> {
  const closed = once(server, "close");
  server.close();
  await Promise.all([closed, worker?.close()]);
  await engine.close();
}
for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => void stop());
