/** Express with a worker in the same process. WORK=off leaves the jobs to worker.ts. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { openEngine } from "curfew";
import express from "express";
import { processors, welcome } from "../jobs.ts";

const engine = await openEngine({ store: process.env.STORE ?? "sqlite:shop.db" });
const worker = process.env.WORK === "off" ? undefined : engine.work({ processors, drain: "20s" });

const app = express();
app.use(express.json());

// Answers when the job is durable, and does not wait for the mail. Express 5 passes a rejection to its error handler.
app.post("/users", async (request, response) => {
  const { email, takes } = request.body as { email: string; takes?: number };
  const job = await engine.enqueue(welcome, { to: email, takes });
  response.status(202).json({ job: job.id });
});

app.get("/jobs/:id", async (request, response) => {
  const job = await engine.load(request.params.id);
  response.status(job ? 200 : 404).json({ state: job?.state ?? null, result: job?.result ?? null });
});

app.get("/health", async (_request, response) => {
  await engine.store.clock(); // rejects if the database does not answer: 500
  const status = worker?.status() ?? { ready: true };
  response.status(status.ready ? 200 : 503).json(status);
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
