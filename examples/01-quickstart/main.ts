/** The smallest whole program: declare a job, work on it, enqueue one, wait for what it returns. */
import { defineJob, openEngine, processor } from "curfew";
import { z } from "zod";

// The contract. A process that only enqueues imports this and loads no processor.
const sendWelcome = defineJob({
  type: "mail.welcome",
  payload: z.object({ to: z.email(), name: z.string() }),
  result: z.object({ subject: z.string() }),
  timeouts: { attempt: "30s", total: "1h" },
});

await using engine = await openEngine({ store: "memory:" });

// The worker. `payload` has the type that the schema gives it; what is returned must fit `result`.
engine.work({
  processors: [
    processor(sendWelcome, async ({ payload, attempt }) => {
      console.log(`attempt ${attempt}: writing to ${payload.to}`);
      return { subject: `Welcome, ${payload.name}!` };
    }),
  ],
});

// The producer. The promise resolves when the job is stored.
const job = await engine.enqueue(sendWelcome, { to: "ada@example.com", name: "Ada" });
const { subject } = await job.result({ within: "5s" });
console.log(`sent: ${subject}`);

// Leaving this block closes the engine: running attempts may finish, nothing stays claimed.
