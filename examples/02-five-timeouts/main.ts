/**
 * The five timeouts one by one, each ending a job in its own way. Virtual time: minutes pass in milliseconds, and the
 * times printed are always the same.
 */
import { constant, defineJob, processor } from "curfew";
import { openTestEngine } from "curfew/testing";

await using test = await openTestEngine();
const { engine } = test;

/** Lets virtual time pass inside a handler. In production this would be a query, an upload, a call. */
const work = (delay: number) => new Promise<void>((resolve) => test.system.after(delay, resolve));

const once = { attempts: 1 };

// wait: too late to begin. Counted from creation until the first start.
const offer = defineJob({ type: "offer.send", queue: "unattended", timeouts: { wait: "5m" } });

// attempt: one run takes too long. The handler hears the signal and has `grace` to clean up.
const upload = defineJob({ type: "file.upload", timeouts: { attempt: "30s" }, retry: once });

// grace: the handler does not listen, so the attempt ends by force 10 s after the signal.
const deaf = defineJob({ type: "report.deaf", timeouts: { attempt: "30s", grace: "10s" }, retry: once });

// total: everything together takes too long, however many attempts it was spread over.
const sync = defineJob({
  type: "stock.sync",
  timeouts: { attempt: "40s", total: "2m", grace: "0s" },
  retry: { attempts: 10, backoff: constant({ first: "5s", jitter: false }), retryFit: "any" },
});

// heartbeat: no sign of life. Where it is named, the handler itself must call beat(), progress() or checkpoint().
const quiet = defineJob({ type: "video.encode", timeouts: { heartbeat: "20s" }, retry: once });

engine.work({
  processors: [
    processor(upload, async ({ signal, onCleanup }) => {
      onCleanup(() => say("cleanup: temporary file removed"));
      await work(29_000);
      signal.throwIfAborted();
      await work(6_000);
      signal.throwIfAborted(); // the signal came at 30 s, and this ends the attempt 5 s into its grace
    }),
    processor(deaf, () => work(300_000)),
    processor(sync, () => work(300_000)),
    processor(quiet, async ({ beat }) => {
      await work(15_000);
      beat();
      await work(300_000);
    }),
  ],
});

let from = test.now();
function say(text: string): void {
  console.log(`  ${String((test.now() - from) / 1000).padStart(4)} s  ${text}`);
}
engine.on("job.timeout", ({ error }) => say(`${error?.message}${error?.forced ? ", by force" : ""}`));
engine.on("job.stuck", ({ type }) => {
  if (type === deaf.type) say("stuck: the handler still runs, but nothing it does counts any more");
});
engine.on("job.retrying", ({ attempt }) => say(`attempt ${attempt} failed, a retry follows`));
engine.on("job.total_timeout", ({ error }) => say(`${error?.message}`));
engine.on("job.stalled", ({ error }) => say(`${error?.message}`));
engine.on("job.ttl_expired", ({ error }) => say(`${error?.message}`));
engine.on("job.discarded", () => say("discarded"));

const cases = [
  ["wait: 5 min in a queue that nobody works on", offer],
  ["attempt: 30 s, and the handler cleans up", upload],
  ["grace: 10 s after the signal, and the handler does not listen", deaf],
  ["total: 2 min, spent on attempts of 40 s", sync],
  ["heartbeat: 20 s, and the handler falls silent after its first beat", quiet],
] as const;

for (const [title, definition] of cases) {
  console.log(title);
  from = test.now();
  await engine.enqueue(definition);
  await test.advance("10m");
}
