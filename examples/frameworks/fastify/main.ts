/** Fastify with a worker in the same process. WORK=off leaves the jobs to worker.ts. */
import { openEngine } from "curfew";
import fastify from "fastify";
import { processors, welcome } from "../jobs.ts";

const engine = await openEngine({ store: process.env.STORE ?? "sqlite:shop.db" });
const worker = process.env.WORK === "off" ? undefined : engine.work({ processors, drain: "20s" });

const app = fastify();

// Answers when the job is durable, and does not wait for the mail.
app.post<{ Body: { email: string; takes?: number } }>("/users", async ({ body }, reply) => {
  const job = await engine.enqueue(welcome, { to: body.email, takes: body.takes });
  return reply.code(202).send({ job: job.id });
});

app.get<{ Params: { id: string } }>("/jobs/:id", async ({ params }, reply) => {
  const job = await engine.load(params.id);
  return reply.code(job ? 200 : 404).send({ state: job?.state ?? null, result: job?.result ?? null });
});

app.get("/health", async (_request, reply) => {
  await engine.store.clock(); // rejects if the database does not answer: 500
  const status = worker?.status() ?? { ready: true };
  return reply.code(status.ready ? 200 : 503).send(status);
});

// preClose runs while open requests get their replies, onClose after them.
app.addHook("preClose", async () => worker?.close());
app.addHook("onClose", () => engine.close());

const address = await app.listen({ port: Number(process.env.PORT ?? 3000), host: "127.0.0.1" });
console.log(`listening on ${address}`);

for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => void app.close());
