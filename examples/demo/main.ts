/**
 * `npm run demo`: about 20 seconds of jobs that succeed, time out, are retried, stall, expire, are extended and cancelled.
 * `npm run demo -- --json` prints the events as JSON lines instead. Ctrl-C drains the worker and ends.
 */
import { parseArgs } from "node:util";
import { type Engine, type JobHandle, openEngine, silentLogger } from "curfew";
import {
  hash,
  mailing,
  migrate,
  offer,
  processors,
  rates,
  reindex,
  report,
  thumbnail,
  upload,
  welcome,
} from "./jobs.ts";
import { createScreen, type Screen } from "./screen.ts";

const { values: flags } = parseArgs({ options: { json: { type: "boolean", default: false } } });

const stopping = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => stopping.abort());

/** A pause to read by; Ctrl-C ends it. */
const pause = (delay: number) =>
  new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, delay);
    stopping.signal.addEventListener("abort", () => resolve(clearTimeout(timer)), { once: true });
  });

/** Waits until the job has ended, however it ended; the events have told it already. */
async function ended(job: JobHandle): Promise<void> {
  await job.result({ signal: stopping.signal }).catch(() => {});
}

type Chapter = readonly [title: string, play: (engine: Engine, screen: Screen) => Promise<void>];

const CHAPTERS: readonly Chapter[] = [
  ["A job that succeeds", async (engine) => ended(await engine.enqueue(welcome, { to: "ada@example.com" }))],
  [
    "attempt 1 s: the handler hears the signal, cleans up within its grace, and is tried again",
    async (engine) => ended(await engine.enqueue(upload)),
  ],
  [
    "attempt 1 s, grace 600 ms: the handler does not listen, so it is ended by force",
    async (engine) => {
      await ended(await engine.enqueue(report));
      await pause(900);
    },
  ],
  [
    "attempt 500 ms, grace 1 s: a success within the grace counts, and is marked late",
    async (engine) => ended(await engine.enqueue(thumbnail)),
  ],
  [
    "total 2 s: ten attempts are allowed, but only those that fit into the budget are made",
    async (engine) => ended(await engine.enqueue(rates)),
  ],
  [
    "heartbeat 800 ms: the handler falls silent; the next attempt goes on from its checkpoint",
    async (engine) => ended(await engine.enqueue(reindex)),
  ],
  [
    "wait 1 s: the queue's only slot is busy, so the second offer would come too late",
    async (engine) => {
      const jobs = await engine.enqueueMany(offer, [{ number: 1 }, { number: 2 }]);
      await Promise.all(jobs.map(ended));
    },
  ],
  [
    "attempt 1.5 s: an operator grants more while it runs",
    async (engine, screen) => {
      const job = await engine.enqueue(migrate);
      await pause(500);
      screen.operator(migrate.type, "extend to 4 s");
      await engine.extend(job.id, { attempt: "4s" });
      await ended(job);
    },
  ],
  [
    "cancel: the verdict stands at once, the handler only cleans up",
    async (engine, screen) => {
      const job = await engine.enqueue(mailing);
      await pause(700);
      screen.operator(mailing.type, "cancel");
      await engine.cancel(job.id);
      await ended(job);
      await pause(200);
    },
  ],
  [
    "A handler that blocks the event loop cannot be stopped in-process, only noticed and named",
    async (engine) => {
      await ended(await engine.enqueue(hash));
      await pause(300);
    },
  ],
];

await using engine = await openEngine({ store: "memory:", logger: silentLogger });
// A second Ctrl-C does not cut the drain short.
engine.closeOnSignals({ drain: "2s" });
const screen = createScreen(() => engine.now());
void tell();
engine.work({
  processors: processors(flags.json ? { handler: () => {} } : screen),
  queues: { default: { concurrency: 10 }, narrow: { concurrency: 1 } },
  middleware: flags.json ? [] : [screen.middleware],
});

if (!flags.json) screen.opening();
for (const [title, play] of CHAPTERS) {
  if (stopping.signal.aborted) break;
  if (!flags.json) screen.chapter(title);
  await play(engine, flags.json ? { ...screen, operator: () => {} } : screen).catch((error: unknown) => {
    // A chapter is cut off by a signal, because the engine closes under it.
    if (!stopping.signal.aborted) throw error;
  });
  await pause(300);
}
if (stopping.signal.aborted && !flags.json)
  console.log("\nDraining: what runs may finish, the rest is given back.");
await engine.close({ drain: "2s" });
if (!flags.json) screen.summary(engine);

/** Every event of this process, as it happens. */
async function tell(): Promise<void> {
  for await (const event of engine.events()) {
    if (flags.json) console.log(JSON.stringify(event));
    else screen.event(event);
  }
}
