import type { Engine } from "../engine/engine.ts";
import { Loop } from "../engine/runtime/loop.ts";
import type { Logger } from "../ports/log.ts";
import { within } from "../ports/system.ts";
import { handlers } from "./handlers.ts";
import { mail, newsletter, rates } from "./jobs.ts";
import { orderSaga } from "./order-saga.ts";
import { FAX, MARK, refuseOtherJobs, TRIALS } from "./own-store.ts";
import { producers } from "./producers.ts";
import { setRules } from "./set-rules.ts";

export interface Demo {
  /** Ends what keeps the shop busy. What runs has a second. */
  close(): Promise<void>;
}

/** What the dashboard says about the demo: where to look. Paths are those of the dashboard. */
export const DEMO_NOTICE = {
  label: "Demo",
  text: "A shop that keeps itself busy. Its jobs time out, loop, hang, fail and are rescued on purpose.",
  links: [
    { text: "An endless loop, killed, with its stack", to: "jobs?tab=timeouts&type=report.render" },
    { text: "A handler that ignores its signal", to: "jobs?type=backup.upload" },
    { text: "Attempts with growing delays", to: "jobs?type=webhook.deliver&state=retryable" },
    { text: "Sixteen calls, twelve a minute", to: "limits" },
    { text: "An order as a workflow", to: "workflows" },
    { text: "Timeouts that a payment revokes", to: "sagas" },
  ],
} as const;

const CLOSE_WITHIN = 2_000;

/** Fills a store with a shop that lives: jobs that end in every way, a workflow, crons and sagas. */
export async function startDemo(engine: Engine, store: string, logger: Logger): Promise<Demo> {
  const { system } = engine.service;
  const was = await refuseOtherJobs(engine, store);
  // First of all, because it marks the store as the demo's.
  await engine.crons.put(MARK, { cron: "* * * * *", job: rates });
  if (was === "empty") {
    await furnish(engine);
    await setRules(engine, logger);
  }
  engine.host([orderSaga]);
  engine.timeouts.serve(TRIALS, ({ payload }) =>
    engine.enqueue(mail, { to: String((payload as { to: unknown }).to), template: "trial-ends" }),
  );
  engine.timeouts.serve(FAX, () => {
    throw new Error("No line: nobody has answered a fax since 2009");
  });
  const worker = engine.work({
    name: "shop",
    processors: handlers(system),
    queues: {
      mail: { concurrency: 20 },
      media: { concurrency: 6 },
      reports: { concurrency: 2 },
      files: { concurrency: 2 },
      webhooks: { concurrency: 10 },
      crm: { concurrency: 5 },
      search: { concurrency: 3 },
      payments: { concurrency: 5 },
      offers: { concurrency: 1 },
      orders: { concurrency: 10 },
    },
  });
  const loops = produce(engine, logger);
  return {
    async close() {
      await within(
        system,
        CLOSE_WITHIN,
        Promise.all([...loops.map((loop) => loop.stop()), worker.close({ drain: "1s" })]),
      );
    },
  };
}

function produce(engine: Engine, logger: Logger): Loop[] {
  const { system } = engine.service;
  return producers(engine, system).map(({ name, first, every, act }) => {
    let turn = -1;
    const loop = new Loop({
      name: `demo ${name}`,
      system,
      logger,
      round: async () => {
        turn += 1;
        if (turn === 0) return Math.max(1, first);
        await act(turn - 1);
        return every;
      },
      onError: (error) =>
        logger.warn({ error, producer: name }, "a producer of the demo failed; it tries again"),
    });
    loop.start();
    return loop;
  });
}

/** What stands in the shop from its first day on. */
async function furnish(engine: Engine): Promise<void> {
  const zone = "Europe/Berlin";
  const digest = { to: "everybody@example.org", template: "digest" };
  await engine.crons.put("demo: send the daily digest", {
    cron: "0 7 * * 1-5",
    zone,
    job: mail,
    payload: digest,
  });
  await engine.crons.put("demo: close the month", {
    cron: "30 2 1 * *",
    zone: "America/New_York",
    job: mail,
    payload: { to: "books@example.org", template: "month" },
    overlap: "skip",
  });
  await engine.crons.put("demo: greet Tokyo", {
    cron: "30 8 * * MON",
    zone: "Asia/Tokyo",
    job: mail,
    payload: digest,
  });
  await engine.crons.as({ actor: "ana", reason: "the office is closed" }).pause("demo: greet Tokyo");
  for (const [index, delay] of (["10m", "45m", "3h", "20h"] as const).entries())
    await engine.enqueue(newsletter, { issue: 112 + index }, { delay, timeouts: { wait: "2d" } });
  const days = [0.02, 0.08, 0.3, 1, 1, 2, 3, 5, 5, 6, 8, 12, 13, 20];
  for (const [index, day] of days.entries())
    await engine.timeouts.insert({
      destination: TRIALS,
      dueAt: { after: { milliseconds: Math.round(day * 86_400_000) } },
      payload: { to: `trial-${index}@example.org` },
      key: `trial ${index}`,
    });
  await engine.timeouts.insert({
    destination: FAX,
    dueAt: { after: "5s" },
    payload: { to: "+49 30 1234567" },
  });
}
