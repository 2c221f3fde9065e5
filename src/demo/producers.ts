/** Who keeps the shop busy: each producer acts again and again, at its own pace. */
import { chain, group, step } from "../core/workflow/node.ts";
import type { Engine } from "../engine/engine.ts";
import { rest, type System } from "../ports/system.ts";
import * as jobs from "./jobs.ts";
import { orderSaga } from "./order-saga.ts";

export interface Producer {
  readonly name: string;
  /** Milliseconds from the start to the first turn, and between two turns. */
  readonly first: number;
  readonly every: number;
  /** One turn, numbered from 0. */
  readonly act: (turn: number) => Promise<unknown>;
}

const OPERATOR = "ana";

/** What producers need: a number below another, and a number for an order. */
interface Shop {
  readonly engine: Engine;
  readonly system: System;
  readonly pick: (most: number) => number;
  readonly orderId: () => string;
}

export function producers(engine: Engine, system: System): Producer[] {
  const pick = (most: number) => Math.floor(system.random() * most);
  /** Orders keep their numbers apart over restarts, so that a saga is never placed twice. */
  const orderId = () => `o-${Math.floor(engine.now() / 100) % 10_000_000}`;
  const shop = { engine, system, pick, orderId };
  return [...traffic(shop), ...troubles(shop), ...orders(shop)];
}

/** What goes well, or nearly. */
function traffic({ engine, pick, orderId }: Shop): Producer[] {
  return [
    {
      name: "mail",
      first: 0,
      every: 400,
      act: () => engine.enqueue(jobs.mail, { to: `customer-${pick(5_000)}@example.org` }),
    },
    {
      name: "images",
      first: 200,
      every: 900,
      act: (turn) => {
        const takes = turn % 19 === 18 ? 2_300 : turn % 7 === 6 ? 1_700 + pick(220) : 200 + pick(900);
        return engine.enqueue(jobs.resize, { file: `photo-${pick(9_000)}.jpg`, takes });
      },
    },
    {
      name: "contacts",
      first: 1_000,
      every: 80_000,
      act: () =>
        engine.enqueueMany(
          jobs.sync,
          [...Array(16)].map(() => ({ contact: 10_000 + pick(9_000) })),
        ),
    },
    {
      name: "payments",
      first: 1_500,
      every: 6_000,
      act: (turn) =>
        engine.enqueue(jobs.charge, {
          order: orderId(),
          cents: 990 + pick(20_000),
          card: `4000 0000 0000 ${1_000 + pick(9_000)}`,
          isDeclined: turn % 5 === 1,
        }),
    },
    {
      name: "archive",
      first: 100,
      every: 300_000,
      act: () =>
        engine.enqueueMany(
          jobs.archive,
          [2023, 2024, 2025].map((year) => ({ year })),
        ),
    },
  ];
}

/** What loops, hangs, fails and waits for too long. */
function troubles({ engine, pick }: Shop): Producer[] {
  return [
    {
      name: "reports",
      first: 0,
      every: 18_000,
      act: (turn) =>
        engine.enqueue(jobs.render, {
          customer: `customer-${pick(400)}`,
          pages: 8 + pick(30),
          brokenPage: turn % 2 === 0 ? 5 : 0,
          loops: turn % 4 === 0 ? 2 : 1,
        }),
    },
    {
      name: "backups",
      first: 500,
      every: 60_000,
      act: () => engine.enqueue(jobs.upload, { bucket: "shop-backups" }),
    },
    {
      name: "webhooks",
      first: 300,
      every: 5_000,
      act: () => engine.enqueue(jobs.webhook, { url: "https://partner.example/hooks", event: "order.paid" }),
    },
    {
      name: "search",
      first: 2_000,
      every: 55_000,
      act: () => engine.enqueue(jobs.reindex, { index: "products", pages: 14 }),
    },
    {
      name: "offers",
      first: 3_000,
      every: 50_000,
      act: () =>
        engine.enqueueMany(
          jobs.offer,
          ["vip-1", "regular-2", "vip-3", "regular-4"].map((name) => ({ to: `${name}@example.org` })),
        ),
    },
  ];
}

/** What takes several steps, and what an operator does. */
function orders({ engine, system, orderId }: Shop): Producer[] {
  return [
    {
      name: "orders",
      first: 2_500,
      every: 20_000,
      act: (turn) => placeOrder(engine, system, orderId(), turn),
    },
    { name: "shipments", first: 1_000, every: 30_000, act: (turn) => startShipment(engine, orderId(), turn) },
    { name: "ledger", first: 4_000, every: 120_000, act: () => extendLedger(engine, system) },
    { name: "videos", first: 6_000, every: 150_000, act: () => cancelVideo(engine, system) },
  ];
}

/** Three of four are paid, which revokes the timeout; it fires for the fourth. */
async function placeOrder(engine: Engine, system: System, id: string, turn: number): Promise<void> {
  await engine.send(orderSaga, "placed", { orderId: id });
  if (turn % 4 === 3) return;
  await rest(system, 12_000);
  await engine.send(orderSaga, "paid", { orderId: id });
}

function startShipment(engine: Engine, order: string, turn: number): Promise<unknown> {
  const steps = chain([
    step(jobs.check, { order }),
    group([step(jobs.reserve, { order }), step(jobs.pack, { order })]),
    step(jobs.ship, { order, isRefused: turn % 4 === 2 }),
    step(jobs.mail, { to: `${order}@example.org`, template: "shipped" }),
  ]);
  return engine.workflows.start(steps, { name: `order ${order}`, timeout: "5m", retention: "1h" });
}

/** An operator sees that it will not end in time, and grants it more. */
async function extendLedger(engine: Engine, system: System): Promise<void> {
  const { id } = await engine.enqueue(jobs.ledger, { month: "2026-10" });
  await rest(system, 10_000);
  const by = { actor: OPERATOR, reason: "the month has more accounts than usual" };
  await engine.extend(id, { attempt: "45s" }, by);
}

async function cancelVideo(engine: Engine, system: System): Promise<void> {
  const { id } = await engine.enqueue(jobs.encode, { file: "draft.mp4" });
  await rest(system, 20_000);
  await engine.cancel(id, { actor: OPERATOR, reason: "wrong file" });
}
