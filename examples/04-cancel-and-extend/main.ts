/** What an operator does to a job from outside: give it more time, look at why it has the limits it has, stop it. */
import { defineJob, JobFailedError, processor, StopError } from "curfew";
import { openTestEngine } from "curfew/testing";

const migrate = defineJob({ type: "table.migrate", timeouts: { attempt: "10m", grace: "30s" } });

await using test = await openTestEngine({ timeouts: { total: "1h" } });
const { engine } = test;
const startedAt = test.now();
const say = (text: string) =>
  console.log(`${String((test.now() - startedAt) / 60_000).padStart(3)} min  ${text}`);

engine.work({
  processors: [
    processor(migrate, ({ signal, remaining }) => {
      say(`handler: started, ${Math.round(remaining() / 60_000)} min until the signal`);
      return new Promise((_, reject) => {
        signal.addEventListener("abort", () => {
          // The reason says who stopped it: a TimeoutError, or a StopError (cancelled, shutdown, lost).
          const { reason } = signal;
          say(
            `handler: told to stop (${reason instanceof StopError ? reason.kind : reason.message}), rolling back`,
          );
          reject(reason);
        });
      });
    }),
  ],
});

const job = await engine.enqueue(migrate, undefined, { meta: { startedBy: "ada" } });
await test.advance("9m");

// Which setting won, and what it beat.
say("operator: why has it only 10 minutes?");
const { fields } = await job.explain(migrate);
for (const { field, value, source, lost } of fields) {
  if (!["attempt", "total", "grace"].includes(field)) continue;
  const others = lost.map((other) => `${other.source}: ${other.value}`).join(", ");
  console.log(
    `         ${field.padEnd(8)}${value.padEnd(5)} said by ${source}${others && ` (not ${others})`}`,
  );
}

// It needs more. This works from any process that opens the same store, on waiting and on running jobs.
await job.extend({ attempt: "30m" });
say("operator: attempt extended to 30 min");

await test.advance("16m");
say("operator: cancel");
await job.cancel(); // the verdict stands from here on; the handler gets its grace only to clean up
await test.settle();

const outcome = await job.result().catch((error: unknown) => error);
if (outcome instanceof JobFailedError) say(`caller: the job was ${outcome.state}`);
