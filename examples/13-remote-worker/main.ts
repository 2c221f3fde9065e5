/**
 * A server, a producer that reaches it over HTTP, and a worker that has no database. The worker keeps the deadlines
 * that the server names: its handler hears the soft signal, and the server gives the job to another worker.
 */
import { constant, defineJob, openEngine, processor } from "curfew";
import { openClient } from "curfew/client";
import { createServer, listen } from "curfew/server";
import { z } from "zod";

const resize = defineJob({
  type: "image.resize",
  payload: z.object({ name: z.string(), width: z.int().positive() }),
  result: z.object({ file: z.string() }),
  timeouts: { attempt: "500ms", grace: "1s" },
  retry: { attempts: 2, backoff: constant({ first: "10ms", jitter: false }) },
});

// One process serves …
await using engine = await openEngine({ store: "memory:" });
const listening = await listen(createServer(engine), { port: 0 });

// … another one works, and knows nothing but the address …
await using worker = openClient({ url: listening.url });
worker.work({
  processors: [
    processor(resize, async ({ payload, attempt, signal, remaining }) => {
      if (payload.name === "huge.png" && attempt === 1) {
        // It takes too long, but it listens.
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        console.log(
          `attempt ${attempt} of ${payload.name}: ${signal.reason.kind} timeout, ${remaining()} ms left`,
        );
        throw signal.reason;
      }
      return { file: `${payload.width}-${payload.name}` };
    }),
  ],
});

// … and a third one enqueues.
await using producer = openClient({ url: listening.url });
for (const name of ["small.png", "huge.png"]) {
  const job = await producer.enqueue(resize, { name, width: 64 });
  const { file } = await job.result({ within: "1m" });
  const { attempt, errors } = (await job.load()) ?? { attempt: 0, errors: [] };
  console.log(
    `${file} after ${attempt} attempt(s)${errors.map(({ message }) => `, before that: ${message}`).join("")}`,
  );
}

await worker.close();
await producer.close();
await listening.close();
