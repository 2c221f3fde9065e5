import { z } from "zod";
import { defineJob } from "../../src/core/job/job-definition.ts";
import { defineSaga } from "../../src/core/saga/saga-definition.ts";
import { chain, group, step } from "../../src/core/workflow/node.ts";
import { processor } from "../../src/engine/attempt/processor.ts";
import type { TestEngine } from "../../src/testing/test-engine.ts";
import { type SeededSettings, seedSettings } from "./seed-settings.ts";

/** What the pages beside the jobs are opened with. */
export interface SeededPages extends SeededSettings {
  readonly workflow: string;
  readonly failedWorkflow: string;
  readonly hostile: string;
}

const fetchOrder = defineJob({ type: "order.fetch", queue: "orders" });
const bill = defineJob({ type: "order.bill", queue: "orders" });
const pack = defineJob({ type: "order.pack", queue: "orders" });
const ship = defineJob({ type: "order.ship", queue: "orders", retry: { attempts: 1 } });
const sync = defineJob({
  type: "crm.sync",
  queue: "crm",
  limit: { key: "crm tenant 17", concurrency: 2, rate: { limit: 50, per: "1m" } },
});
const render = defineJob({ type: "report.monthly", queue: "reports", unique: { payload: ["customer"] } });
/** Nobody works on its queue. */
const scan = defineJob({ type: "scan.read", queue: "scans", timeouts: { wait: "30m" } });
const thumb = defineJob({ type: "image.thumb", queue: "images", timeouts: { attempt: "2s" } });

const Order = z.object({ orderId: z.string() });
const orderSaga = defineSaga({
  type: "order",
  state: z.object({ orderId: z.string(), reminders: z.int() }),
  messages: { placed: Order, paid: Order },
  timeouts: { reminder: z.object({ nth: z.int() }), paymentLate: z.object({}) },
  correlate: { placed: (message) => message.orderId, paid: (message) => message.orderId },
  startedBy: "placed",
  start(order, saga) {
    saga.request("reminder", { after: "24h" }, { nth: 1 });
    saga.request("paymentLate", { at: "17:00", days: 7, zone: "Europe/Berlin" }, {}, { key: "late" });
    return { orderId: order.orderId, reminders: 0 };
  },
  on: {
    paid(state, _payment, saga) {
      saga.revoke("late");
      return saga.complete(state);
    },
  },
  onTimeout: {
    reminder: (state, { nth }) => ({ ...state, reminders: nth }),
    paymentLate: (state, _payload, saga) => saga.complete(state),
  },
});

type Hostile = { readonly hostile: string };

async function seedWorkflows({ engine }: TestEngine, { hostile }: Hostile) {
  const order = chain([
    step(fetchOrder, { order: 7 }),
    group([step(bill, { order: 7 }), step(pack, { order: 7, note: hostile })]),
    step(ship, { order: 7 }),
  ]);
  const running = await engine.workflows.start(order, {
    name: "order 7",
    timeout: "30m",
    meta: { note: hostile },
  });
  const failed = await engine.workflows.start(chain([step(ship, { fails: true }), step(bill, {})]), {
    name: hostile,
  });
  await engine.workflows.start(group([step(fetchOrder, {}), step(fetchOrder, {})]), { name: "refresh" });
  return { workflow: running.id, failedWorkflow: failed.id };
}

async function seedCrons({ engine }: TestEngine, { hostile }: Hostile) {
  const zone = "Europe/Berlin";
  await engine.crons.put("close the books", { cron: "0 3 * * 1-5", zone, job: fetchOrder, overlap: "skip" });
  await engine.crons.put("monthly statement", { cron: "0 9 1 * *", zone, job: fetchOrder });
  await engine.crons.put("refresh search", { cron: "*/10 * * * *", job: fetchOrder });
  await engine.crons.put("wake Tokyo", { cron: "30 8 * * MON", zone: "Asia/Tokyo", job: fetchOrder });
  await engine.crons.put(hostile.slice(0, 60), { cron: "0 0 1 1 *", job: fetchOrder, payload: { hostile } });
  const operator = engine.crons.as({ actor: "ana", reason: "not in November" });
  await operator.pause("wake Tokyo");
  await operator.trigger("close the books");
}

async function seedTimeouts({ engine }: TestEngine, { hostile }: Hostile) {
  engine.host([orderSaga]);
  for (const orderId of ["o-77310", "o-77342", "o-77391", hostile])
    await engine.send(orderSaga, "placed", { orderId });
  const due = ["20m", "21m", "50m", "2h", "3h", "3h", "5h", "30h", "50h", "12d"] as const;
  for (const [index, after] of due.entries())
    await engine.timeouts.insert({
      destination: index % 3 === 0 ? "reminders" : "trials",
      dueAt: { after },
      payload: { index, note: hostile },
      key: `trial ${index}`,
    });
  engine.timeouts.serve("mailbox", () => {
    throw new Error(`mailbox is full ${hostile}`);
  });
  await engine.timeouts.insert({ destination: "mailbox", dueAt: { after: "1s" }, payload: { hostile } });
}

function startWorkers({ engine, system }: TestEngine) {
  const rest = (span: number) => new Promise<void>((resolve) => system.after(span, resolve));
  engine.work({
    queues: { orders: { concurrency: 10 }, crm: { concurrency: 10 }, images: { concurrency: 20 } },
    processors: [
      processor(fetchOrder, () => rest(2_000)),
      processor(bill, () => rest(3_600_000)),
      processor(pack, async ({ progress }) => {
        progress(0.4, "2 of 5 packed");
        await rest(3_600_000);
      }),
      processor(ship, ({ payload }) => {
        if ((payload as { fails?: boolean }).fails) throw new Error("no carrier takes it");
      }),
      processor(sync, () => rest(3_600_000)),
      processor(thumb, ({ payload }) => rest((payload as { takes: number }).takes)),
    ],
  });
}

/** Fills the engine with what the other pages show. The clock of the stage must stand still meanwhile. */
export async function seedPages(test: TestEngine, hostile = "<b>bold</b>"): Promise<SeededPages> {
  const { engine } = test;
  startWorkers(test);
  await seedTimeouts(test, { hostile });
  // Ten tries with growing delays until one of them is dead.
  for (let count = 0; count < 40; count++) await test.advance("1m");
  for (let count = 0; count < 150; count++)
    await engine.enqueue(thumb, { takes: count % 40 === 0 ? 1_950 : 300 + count });
  await test.advance("20s");
  for (let count = 0; count < 5; count++) await engine.enqueue(sync, { count, note: hostile });
  for (let count = 0; count < 6; count++) await engine.enqueue(scan, { file: `scan-${count}.pdf` });
  await engine.queues.configure(
    "images",
    { concurrency: 20, depth: { most: 100 }, timeouts: { wait: "5m" } },
    { actor: "ana" },
  );
  await engine.queues.configure("crm", { concurrency: 2 }, { actor: "ana" });
  await engine.queues.pause("reports", { actor: "ana", reason: "provider incident" });
  await engine.enqueue(render, { customer: hostile });
  await seedCrons(test, { hostile });
  const settings = await seedSettings(test, hostile);
  const workflows = await seedWorkflows(test, { hostile });
  await test.advance("30s");
  return { ...workflows, ...settings, hostile };
}
