import { WEBHOOK_QUEUE } from "../../core/job/internal-queue.ts";
import type { WebhookSender } from "../../ports/webhooks.ts";
import { type Processor, processor } from "../attempt/processor.ts";
import type { EngineContext } from "../context.ts";
import type { WorkOptions } from "../worker/work-options.ts";
import { Deliverer } from "./deliverer.ts";
import { DELIVERY } from "./delivery-jobs.ts";
import { Endpoints } from "./endpoints.ts";
import { type FollowerDeps, WebhookFollower } from "./follower.ts";
import { WebhookCounters, type WebhookCounts } from "./webhook-counters.ts";
import { WEBHOOKS } from "./webhook-records.ts";
import { Webhooks, type WebhooksDeps } from "./webhooks.ts";

/** How a process delivers webhooks. */
export interface WebhookSetup {
  readonly sender: WebhookSender;
  /** Calls that run at once in this process. Default 64. */
  readonly concurrency?: number;
}

const CONCURRENCY = 64;

/** The webhooks of an engine, and what delivers them in this process if it does. */
export function openWebhooks(
  context: EngineContext,
  host: Omit<WebhooksDeps, "sender" | "changed" | "counts">,
  setup: WebhookSetup | undefined,
): [Webhooks, WebhookDelivery | undefined] {
  const delivery = setup && new WebhookDelivery(context, host, setup);
  const webhooks = new Webhooks(context, {
    ...host,
    sender: setup?.sender,
    changed: (id) => delivery?.changed(id),
    counts: () => delivery?.counts ?? null,
  });
  return [webhooks, delivery];
}

/** The parts of a process that delivers: one reads the journal, a worker makes the calls. */
export class WebhookDelivery {
  readonly #context: EngineContext;
  readonly #setup: WebhookSetup;
  readonly #follower: WebhookFollower;
  readonly #endpoints: Endpoints;
  readonly #counters = new WebhookCounters();
  readonly #processor: Processor;
  #waitingWork: ((options: WorkOptions) => unknown) | undefined;
  #start: (() => unknown) | undefined;

  constructor(context: EngineContext, host: FollowerDeps, setup: WebhookSetup) {
    this.#context = context;
    this.#setup = setup;
    this.#follower = new WebhookFollower(context, host, () => this.#work());
    this.#endpoints = new Endpoints(context);
    const { sender } = setup;
    const parts = { endpoints: this.#endpoints, sender, counters: this.#counters };
    const deliverer = new Deliverer(context, parts);
    this.#processor = processor(DELIVERY, (attempt) => deliverer.run(attempt));
  }

  /** Starts where there is something to deliver: now, or with the first subscription. For tenants, of which there are many. */
  async startIfNeeded(work: (options: WorkOptions) => unknown): Promise<void> {
    this.#waitingWork = work;
    const [first] = await WEBHOOKS.list(this.#context.store, null, 1);
    if (first) this.#startWaiting();
  }

  #startWaiting(): void {
    const work = this.#waitingWork;
    this.#waitingWork = undefined;
    if (work) this.start(work);
  }

  /** The worker is started with the first subscription: without one, its beats would be for nothing. */
  start(work: (options: WorkOptions) => unknown): void {
    const { concurrency = CONCURRENCY } = this.#setup;
    this.#start = () => work({ processors: [this.#processor], queues: { [WEBHOOK_QUEUE]: { concurrency } } });
    this.#follower.loop.start();
    this.#endpoints.loop.start();
  }

  #work(): void {
    this.#start?.();
    this.#start = undefined;
  }

  /** Events may have been committed. */
  wake(): void {
    this.#follower.wake();
  }

  changed(id: string): void {
    this.#startWaiting();
    this.#endpoints.forget(id);
    this.#follower.changed();
  }

  get counts(): WebhookCounts {
    return this.#counters.snapshot(this.#follower.active);
  }

  /** After the worker is closed, so that its last counts are written. */
  async stop(): Promise<void> {
    await Promise.all([this.#follower.stop(), this.#endpoints.loop.stop()]);
    // Counts only: a store that fails must not keep the engine from closing.
    await this.#endpoints.flush().catch(() => {});
    // Tenants share the sender of the engine that was opened first.
    if (this.#context.tenant === null) this.#setup.sender.close();
  }
}
