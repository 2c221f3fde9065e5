import { errorText } from "../../core/errors.ts";
import { Discard, type Snooze, StopError, snooze } from "../../core/job/reasons.ts";
import { jittered } from "../../core/pace.ts";
import type { Json } from "../../core/schema.ts";
import { signingSecrets } from "../../core/webhook/secret.ts";
import { MOST_BATCHED } from "../../core/webhook/subscription.ts";
import type { WebhookAnswer, WebhookSender } from "../../ports/webhooks.ts";
import type { AttemptContext } from "../attempt/processor.ts";
import type { EngineContext } from "../context.ts";
import { type DeliveryPayload, REFUSED } from "./delivery-jobs.ts";
import { DeliveryPace } from "./delivery-pace.ts";
import type { Endpoint, Endpoints } from "./endpoints.ts";
import type { WebhookCounters } from "./webhook-counters.ts";

/** An endpoint cannot put a delivery off for longer with `Retry-After`. */
const LONGEST_PUT_OFF = 3_600_000;
const ERROR_LIMIT = 500;

/** The endpoint did not take the events. Without a stack: the job stores the message of each call. */
class CallFailed extends Error {
  constructor(name: string, message: string, code: string) {
    super(message);
    this.name = name;
    this.stack = "";
    Object.assign(this, { code });
  }
}

/** The id of a delivery, as receivers and clients see it. */
export function deliveryId(job: string): string {
  return `del_${job}`;
}

/** Runs deliveries: one attempt is one call. */
export class Deliverer {
  readonly #context: Pick<EngineContext, "clock" | "system" | "random">;
  readonly #endpoints: Endpoints;
  readonly #sender: WebhookSender;
  readonly #counters: WebhookCounters;
  readonly #pace: DeliveryPace;

  constructor(
    context: Pick<EngineContext, "clock" | "system" | "random">,
    parts: { endpoints: Endpoints; sender: WebhookSender; counters: WebhookCounters },
  ) {
    this.#context = context;
    this.#endpoints = parts.endpoints;
    this.#sender = parts.sender;
    this.#counters = parts.counters;
    this.#pace = new DeliveryPace(context.system);
  }

  /** The handler of deliveries. Its result is what the endpoint answered. */
  async run(attempt: AttemptContext<DeliveryPayload>): Promise<Json | Snooze> {
    const { subscription: id } = attempt.payload;
    const endpoint = await this.#endpoints.of(id);
    if (!endpoint) throw new Discard("the subscription was deleted");
    if (!endpoint.subscription.active) throw new Discard("the subscription is not active");
    // The lanes of an ordered subscription hold back all but 16 deliveries. One that is put off would be overtaken.
    const isOrdered = endpoint.subscription.ordered;
    const waitUntil = isOrdered ? null : await this.#endpoints.mustWait(id, endpoint);
    if (waitUntil !== null) return this.#postponed(waitUntil);
    await this.#pace.started();
    const { system } = this.#context;
    const from = system.monotonic();
    try {
      return await this.#delivered(attempt, endpoint);
    } finally {
      // A late answer counts at once: the attempt must not time out meanwhile.
      if (system.monotonic() - from < endpoint.subscription.timeout / 2) await this.#pace.ended();
    }
  }

  async #delivered(attempt: AttemptContext<DeliveryPayload>, endpoint: Endpoint): Promise<Json | Snooze> {
    const { subscription: id } = attempt.payload;
    const isOrdered = endpoint.subscription.ordered;
    const answer = await this.#call(id, attempt, endpoint);
    const { status, elapsed, text, retryAfter } = answer;
    const hasAnswered = status < 300 || (status >= 400 && status < 500 && status !== 429 && status !== 408);
    if (hasAnswered) await this.#endpoints.answered(id, endpoint);
    else await this.#endpoints.failed(id, endpoint);
    if (status >= 200 && status < 300) {
      this.#count(attempt, "delivered", elapsed);
      return { status, elapsed: Math.round(elapsed), text };
    }
    const message = `the endpoint answered ${status}${status >= 300 && status < 400 ? "; redirects are not followed" : ""}`;
    if (retryAfter !== null && !isOrdered && (status === 429 || status === 503)) {
      this.#counters.postponed += 1;
      return snooze({ after: { milliseconds: Math.min(Math.max(retryAfter, 1_000), LONGEST_PUT_OFF) } });
    }
    throw this.#failure(
      attempt,
      endpoint,
      hasAnswered ? REFUSED : "WebhookFailed",
      message,
      `http_${status}`,
      elapsed,
    );
  }

  /** Spread over a quarter of the pause or more, so that the deliveries do not all come back at once. */
  #postponed(until: number): Snooze {
    this.#counters.postponed += 1;
    const { clock, random } = this.#context;
    const rest = Math.max(1_000, until - clock.now());
    return snooze({ after: { milliseconds: Math.ceil(rest + jittered(rest / 2, random)) } });
  }

  async #call(
    id: string,
    { payload, id: job, signal, attempt }: AttemptContext<DeliveryPayload>,
    endpoint: Endpoint,
  ): Promise<WebhookAnswer> {
    const { clock, system } = this.#context;
    const { subscription, secrets } = endpoint;
    const at = clock.now();
    const from = system.monotonic();
    try {
      return await this.#sender.send({
        url: subscription.url,
        subscription: id,
        delivery: payload.repeats ?? deliveryId(job),
        events: payload.events.slice(0, MOST_BATCHED),
        isBatch: subscription.batch.size > 1 || payload.events.length > 1,
        secrets: signingSecrets(secrets, at),
        at,
        headers: subscription.headers ?? {},
        signal,
      });
    } catch (error) {
      // The worker stops, or the delivery was cancelled. That says nothing about the endpoint.
      if (signal.aborted && signal.reason instanceof StopError) throw error;
      await this.#endpoints.failed(id, endpoint);
      const message = errorText(error, ERROR_LIMIT);
      const elapsed = system.monotonic() - from;
      throw this.#failure({ payload, attempt }, endpoint, "WebhookFailed", message, codeOf(error), elapsed);
    }
  }

  #failure(
    attempt: Pick<AttemptContext<DeliveryPayload>, "payload" | "attempt">,
    { subscription }: Endpoint,
    name: string,
    message: string,
    code: string,
    elapsed: number,
  ): CallFailed {
    const isLast = name === REFUSED || attempt.attempt >= subscription.retry.attempts;
    this.#count(attempt, isLast ? "dead" : "failed", elapsed, message);
    return new CallFailed(name, message, code);
  }

  #count(
    { payload }: Pick<AttemptContext<DeliveryPayload>, "payload">,
    outcome: "delivered" | "failed" | "dead",
    elapsed: number,
    error?: string,
  ): void {
    const name = payload.events.length === 1 ? (payload.events[0]?.name ?? "none") : "batch";
    this.#counters.called(name, outcome, elapsed);
    this.#endpoints.count(payload.subscription, outcome, error);
  }
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && code !== "" ? code : "no_answer";
}
