import { parseAllowList } from "../../src/core/webhook/endpoint.ts";
import { defineJob, processor } from "../../src/index.ts";
import type { Store } from "../../src/ports/store.ts";
import type { WebhookAnswer, WebhookCall, WebhookSender } from "../../src/ports/webhooks.ts";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import { openStage, type Stage } from "./stage.ts";

export const URL = "https://example.com/hook";
export const OK: WebhookAnswer = { status: 200, elapsed: 5, text: "ok", retryAfter: null };
export const BROKEN: WebhookAnswer = { ...OK, status: 500, text: "broken" };

/** Answers a call, or rejects as a connection that fails does. */
export type Answering = (call: WebhookCall, nth: number) => WebhookAnswer | Promise<WebhookAnswer>;

/** A sender without a network: it keeps the calls and answers as it is told. */
export function fakeSender(answer: Answering = () => OK) {
  const calls: WebhookCall[] = [];
  const sender: WebhookSender = {
    allowed: parseAllowList([], "allow"),
    async send(call) {
      calls.push(call);
      return answer(call, calls.length);
    },
    close() {},
  };
  return { calls, sender };
}

const WORK = defineJob({ type: "test.job" });

export interface WebhookStage extends Stage {
  readonly calls: WebhookCall[];
  /** Names of the events of all calls, in their order. */
  sent(): string[];
  /** Runs jobs to their end. */
  run(count: number): Promise<string[]>;
}

/** An engine that delivers webhooks through a fake network, and a worker whose jobs succeed. */
export async function openWebhookStage(
  answer?: Answering,
  wrap: (store: Store) => Store = (store) => store,
): Promise<WebhookStage> {
  const { calls, sender } = fakeSender(answer);
  const store = (clock: () => number) => wrap(createMemoryStore({ clock }));
  const stage = await openStage({ webhooks: { sender }, events: "durable", store });
  stage.work([processor(WORK, () => {})]);
  return {
    ...stage,
    calls,
    sent: () => calls.flatMap(({ events }) => events.map(({ name }) => name)),
    async run(count) {
      const jobs = await stage.engine.enqueueMany(WORK, new Array(count).fill(null));
      await stage.advance("3s");
      return jobs.map(({ id }) => id);
    },
  };
}
