import { defineJob } from "../../src/core/job/job-definition.ts";
import { constant } from "../../src/core/job/policy/retry.ts";
import { processor } from "../../src/engine/attempt/processor.ts";
import type { TestEngine } from "../../src/testing/test-engine.ts";

/** Ids of jobs that pages are opened with. */
export interface Seeded {
  readonly running: string;
  readonly killed: string;
  readonly completed: string;
  readonly scheduled: string;
  readonly expired: string;
  readonly deadLetter: string;
  readonly hostile: string;
}

const steady = (first: "5s" | "30s" | "1m") => constant({ first, jitter: false });

const render = defineJob({
  type: "report.render",
  queue: "reports",
  timeouts: { wait: "15m", attempt: "2m", grace: "20s", total: "20m", heartbeat: "1m" },
  retry: { attempts: 3, backoff: steady("30s") },
});
const archive = defineJob({
  type: "invoice.archive",
  queue: "reports",
  timeouts: { attempt: "5m", total: "1h" },
});
const mail = defineJob({
  type: "statement.mail",
  queue: "billing",
  timeouts: { wait: "10m", attempt: "30s" },
});
const charge = defineJob({
  type: "card.charge",
  queue: "billing",
  timeouts: { attempt: "10s", total: "2h" },
  retry: { attempts: 2, backoff: steady("5s"), onExhausted: "dead-letter" },
});
const video = defineJob({ type: "video.encode", queue: "video", timeouts: { wait: "30m" } });
const month = defineJob({
  type: "ledger.close",
  queue: "billing",
  timeouts: { attempt: "30s", grace: "5s" },
});

/** An error with a cause, as a driver throws it. */
function refusedConnection(): Error {
  const cause = Object.assign(new Error("connect ECONNREFUSED 10.2.0.14:443"), { code: "ECONNREFUSED" });
  return new Error("The card service did not answer", { cause });
}

/** A worker for two of the three queues: nobody works on the third. */
function startWorker(test: TestEngine): void {
  const { engine } = test;
  const rest = (span: number) => new Promise<void>((resolve) => test.system.after(span, resolve));
  const never = () => new Promise<void>(() => {});
  engine.work({
    queues: { reports: { concurrency: 12 }, billing: { concurrency: 8 } },
    processors: [
      processor(render, async ({ payload, attempt, progress, checkpoint, log }) => {
        const { pages, hangsAt, hangs } = payload as { pages: number; hangsAt: number; hangs: number };
        log("rendering begins", { pages, attempt });
        const first = hangs < 3 && attempt > 1 ? hangsAt : 1;
        for (let page = first; page <= pages; page++) {
          progress(page / pages, `page ${page} of ${pages}`);
          await checkpoint({ page, files: [`page-${page}.pdf`] });
          await rest(8_000);
          if (page === hangsAt && attempt <= hangs) await never();
        }
      }),
      processor(archive, async ({ payload }) => {
        await rest((payload as { takes: number }).takes);
        return { pages: 3, stored: "archive/2026/11" };
      }),
      processor(mail, () => rest(6_600)),
      processor(charge, () => {
        throw refusedConnection();
      }),
      processor(month, () => rest(33_100)),
    ],
  });
}

/** Fills the engine with jobs in every state, as a busy afternoon leaves them. */
export async function seed(test: TestEngine, hostile = "<img src=x onerror=alert(1)>"): Promise<Seeded> {
  const { engine } = test;
  startWorker(test);
  const killed = await engine.enqueue(render, {
    pages: 20,
    hangsAt: 12,
    hangs: 3,
    customer: { id: 8812, plan: "team" },
  });
  const completed = await engine.enqueue(archive, { takes: 282_000, invoice: "2026-10-0042" });
  await engine.enqueue(month, {});
  for (let count = 0; count < 30; count++) {
    await engine.enqueue(mail, { to: `customer-${count}@example.org` });
    if (count % 6 === 0) await engine.enqueue(charge, { amount: 1_990 + count });
    await engine.enqueue(archive, { takes: 4_000 + count * 900 });
    await test.advance("45s");
  }
  const deadLetter = await engine.enqueue(charge, { amount: 4_200, currency: "EUR", card: "[redacted]" });
  for (let count = 0; count < 5; count++) await engine.enqueue(video, { file: `lecture-${count}.mp4` });
  await engine.queues.pause("billing", { actor: "ana", reason: "provider incident" });
  const expired = await engine.enqueue(mail, { to: "late@example.org" });
  await test.advance("11m");
  await engine.queues.resume("billing", { actor: "ana" });
  const scheduled = await engine.enqueue(
    mail,
    { to: "tomorrow@example.org" },
    { delay: "2h", timeouts: { wait: "3h" } },
  );
  const strange = await engine.enqueue(
    video,
    { [hostile]: hostile, list: [hostile, { deep: hostile }] },
    { meta: { note: hostile } },
  );
  const cancelled = await engine.enqueue(video, { file: "wrong.mp4" });
  await engine.cancel(cancelled.id, { actor: "ana", reason: "wrong month" });
  const running = await engine.enqueue(render, {
    pages: 66,
    hangsAt: 12,
    hangs: 1,
    customer: { id: 17, plan: "team" },
  });
  await test.advance("2m");
  for (let count = 0; count < 4; count++) await engine.enqueue(archive, { takes: 290_000 });
  await test.advance("90s");
  return {
    running: running.id,
    killed: killed.id,
    completed: completed.id,
    scheduled: scheduled.id,
    expired: expired.id,
    deadLetter: deadLetter.id,
    hostile: strange.id,
  };
}
