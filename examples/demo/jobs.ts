/** The jobs of the demo: each is built to end in its own way. Limits are short, so that nobody has to wait. */
import { constant, defineJob, exponential, type Processor, processor, unchecked } from "curfew";
import type { Screen } from "./screen.ts";

const quickly = constant({ first: "400ms", jitter: false });

export const welcome = defineJob({ type: "mail.welcome", payload: unchecked<{ to: string }>() });

export const upload = defineJob({
  type: "file.upload",
  timeouts: { attempt: "1s", grace: "5s" },
  retry: { attempts: 2, backoff: quickly },
});

export const report = defineJob({
  type: "report.render",
  timeouts: { attempt: "1s", grace: "600ms" },
  retry: { attempts: 1 },
});

export const thumbnail = defineJob({ type: "image.thumb", timeouts: { attempt: "500ms", grace: "5s" } });

export const rates = defineJob({
  type: "rates.fetch",
  timeouts: { attempt: "300ms", total: "2s" },
  retry: { attempts: 10, backoff: exponential({ first: "150ms", jitter: false }) },
});

export const reindex = defineJob({
  type: "search.index",
  timeouts: { heartbeat: "800ms" },
  retry: { backoff: quickly },
});

export const offer = defineJob({
  type: "offer.send",
  queue: "narrow",
  payload: unchecked<{ number: number }>(),
  timeouts: { wait: "1s" },
});

export const migrate = defineJob({ type: "table.migrate", timeouts: { attempt: "1500ms" } });

export const mailing = defineJob({ type: "mail.bulk" });

export const hash = defineJob({ type: "password.hash" });

const wait = (delay: number) => new Promise<void>((resolve) => setTimeout(resolve, delay));

/** Ends when the signal aborts, as fetch, timers and most clients do when they are handed one. */
const untilAborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

export function processors({ handler }: Pick<Screen, "handler">): Processor[] {
  return [
    processor(welcome, () => wait(200)),

    // Listens: it is told in time, tidies up and leaves. The second attempt is quick enough.
    processor(upload, async ({ type, attempt, signal, onCleanup }) => {
      onCleanup(() => handler(type, "hears the signal, removes its temporary file"));
      if (attempt === 2) return wait(300);
      await untilAborted(signal).catch(() => wait(300)); // cleaning up takes a moment, which is what grace is for
      signal.throwIfAborted();
    }),

    // Does not listen: ended by force. What it returns in the end is refused.
    processor(report, async ({ type, onCleanup }) => {
      onCleanup(() => handler(type, "does not listen to the signal"));
      await wait(2_300);
      handler(type, "returns at last; its fence is void, so nobody hears it");
    }),

    processor(thumbnail, () => wait(800)),

    processor(rates, () => {
      throw new Error("503 Service Unavailable");
    }),

    // Beats as it goes and hangs at page 3; the next attempt goes on from the checkpoint.
    processor(reindex, async ({ type, attempt, lastCheckpoint, checkpoint }) => {
      const done = typeof lastCheckpoint === "number" ? lastCheckpoint : 0;
      if (done > 0) handler(type, `goes on after page ${done}`);
      for (let page = done + 1; page <= 4; page++) {
        await wait(200);
        if (attempt === 1 && page === 3) await new Promise(() => {});
        await checkpoint(page);
      }
      handler(type, "has indexed page 4 of 4");
    }),

    processor(offer, ({ type, payload }) => {
      handler(type, `sends offer ${payload.number}, which takes longer than the next one may wait`);
      return wait(1_500);
    }),
    processor(migrate, () => wait(2_500)),

    processor(mailing, async ({ type, signal, onCleanup }) => {
      onCleanup(() => handler(type, "hears that it was cancelled, closes its connection"));
      await untilAborted(signal);
    }),

    // Computes without a pause: meanwhile nothing else in this process can run, not even a timer.
    processor(hash, async () => {
      await wait(150);
      const until = performance.now() + 600;
      while (performance.now() < until);
      await wait(150);
    }),
  ];
}
