import type { JournalEvent } from "../../core/event/journal-event.ts";
import {
  type EnqueueContext,
  type JobTemplate,
  type NewJob,
  prepareJob,
  stamp,
} from "../../core/job/enqueue/envelope.ts";
import { WEBHOOK_QUEUE } from "../../core/job/internal-queue.ts";
import { defineJob, unchecked } from "../../core/job/job-definition.ts";
import type { Instant } from "../../core/time.ts";
import { CALLS_AT_ONCE, laneOf, type Subscription } from "../../core/webhook/subscription.ts";

/** The payload of a delivery. */
export interface DeliveryPayload {
  /** Events of a subscription are found by this text, so it stands first. */
  readonly subscription: string;
  /** The first delivery, if this one repeats it. Receivers get its id. */
  readonly repeats?: string;
  readonly events: readonly JournalEvent[];
}

/** Errors of this type are not retried: the endpoint answered 4xx. */
export const REFUSED = "WebhookRefused";
const DAY = 86_400_000;
const LEAST_TOTAL = 3 * DAY;

/**
 * A delivery is a job, so it has timeouts, retries and a dead letter. Each setting is named here or at the enqueue: those
 * that a user has for the whole engine must not end deliveries.
 */
export const DELIVERY = defineJob({
  type: "curfew.webhook",
  queue: WEBHOOK_QUEUE,
  payload: unchecked<DeliveryPayload>(),
  timeouts: { wait: "none", grace: "2s", heartbeat: "20s", mode: "fail" },
  retry: { retryFit: "any", onStall: "retry", onExhausted: "dead-letter", except: [REFUSED] },
  retention: { completed: "1d", discarded: "14d", cancelled: "1d", deadLetter: "14d" },
});

/** Makes the deliveries of one subscription. Deliveries of a lane share a template, which stores write together. */
export class DeliveryMaker {
  readonly #id: string;
  readonly #subscription: Subscription;
  readonly #context: EnqueueContext;
  readonly #templates = new Map<string, JobTemplate>();

  constructor(id: string, subscription: Subscription, context: EnqueueContext, at: Instant) {
    this.#id = id;
    this.#subscription = subscription;
    // Deliveries record no events of their own, and settings of the engine and of queues are not theirs.
    const { nextId, hash, documentLimit } = context;
    this.#context = {
      now: at,
      nextId,
      hash,
      isInternal: true,
      ...(documentLimit !== undefined && { documentLimit }),
    };
  }

  /** `texts` are the events as JSON. */
  make(about: string, texts: readonly string[], repeats?: string): NewJob {
    const lane = laneOf(this.#id, this.#subscription, about);
    let template = this.#templates.get(lane);
    if (!template) {
      template = prepareJob(DELIVERY, this.#options(lane), this.#context);
      this.#templates.set(lane, template);
    }
    const of = repeats === undefined ? "" : `"repeats":${JSON.stringify(repeats)},`;
    const payload = `{"subscription":${JSON.stringify(this.#id)},${of}"events":[${texts.join(",")}]}`;
    return stamp(template, payload, this.#context.nextId);
  }

  #options(lane: string) {
    const { ordered, timeout, retry } = this.#subscription;
    const { attempts, delays } = retry;
    const used = delays.slice(0, attempts - 1);
    const waits =
      used.reduce((sum, delay) => sum + delay, 0) + (delays.at(-1) ?? 0) * (attempts - 1 - used.length);
    return {
      limit: ordered
        ? { key: lane, concurrency: 1, strict: true }
        : { key: lane, concurrency: CALLS_AT_ONCE },
      timeouts: {
        attempt: { milliseconds: timeout },
        // A delay is up to half as long again by its jitter.
        total: { milliseconds: Math.max(LEAST_TOTAL, 2 * (waits + attempts * timeout)) },
      },
      retry: {
        attempts,
        backoff: { kind: "delays" as const, delays, max: 2 * DAY, jitter: true },
      },
      meta: { subscription: this.#id },
    };
  }
}

/** What a delivery is about, for its lane: the job, else the queue, worker or workflow. */
export function subjectOf({ job, subject, name }: JournalEvent): string {
  return job ?? subject ?? name;
}
