import type { Instant } from "../../core/time.ts";
import { FAILURES_TO_OPEN, opened, probing } from "../../core/webhook/circuit.ts";
import type { WebhookSecrets } from "../../core/webhook/secret.ts";
import type { Subscription } from "../../core/webhook/subscription.ts";
import { changeRecord } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";
import { type Loop, storeLoop } from "../runtime/loop.ts";
import { NEW_STATE, SECRETS, STATES, WEBHOOKS, type WebhookState } from "./webhook-records.ts";

/** A subscription with what its calls need. */
export interface Endpoint {
  readonly subscription: Subscription;
  readonly secrets: WebhookSecrets;
  readonly state: WebhookState;
}

/** How old what is known of an endpoint may be, in milliseconds. */
const FRESH = 1_000;
const MOST_KNOWN = 1_000;
const COUNTS_EVERY = 2_000;
const ERROR_LIMIT = 300;

interface Tally {
  delivered: number;
  failed: number;
  dead: number;
  deliveredAt: Instant | null;
  failedAt: Instant | null;
  lastError: string | null;
}

/** The endpoints of this process: what is known of each, its circuit, and the counts of its calls. */
export class Endpoints {
  /** Writes the counts. */
  readonly loop: Loop;
  readonly #context: EngineContext;
  readonly #known = new Map<string, { readonly endpoint: Promise<Endpoint | null>; readonly at: number }>();
  /** Failed calls in a row, in this process. */
  readonly #failures = new Map<string, number>();
  readonly #tallies = new Map<string, Tally>();

  constructor(context: EngineContext) {
    this.#context = context;
    this.loop = storeLoop(context, "webhook counts", async () => {
      await this.flush();
      return this.#tallies.size === 0 ? null : COUNTS_EVERY;
    });
  }

  /** The endpoint as it was at most a second ago; null if its subscription was deleted. */
  of(id: string): Promise<Endpoint | null> {
    const at = this.#context.system.monotonic();
    const known = this.#known.get(id);
    if (known && at - known.at < FRESH) return known.endpoint;
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    const endpoint = this.#load(id);
    this.#known.set(id, { endpoint, at });
    endpoint.catch(() => this.#known.delete(id));
    return endpoint;
  }

  forget(id: string): void {
    this.#known.delete(id);
  }

  async #load(id: string): Promise<Endpoint | null> {
    const keys = [WEBHOOKS.key(id), SECRETS.key(id), STATES.key(id)];
    const [webhook, secrets, state] = await this.#context.store.records.load(keys);
    if (!webhook || !secrets) return null;
    return {
      subscription: WEBHOOKS.read(webhook).body,
      secrets: SECRETS.read(secrets).body,
      state: state ? STATES.read(state).body : NEW_STATE,
    };
  }

  /**
   * Whether a delivery may call the endpoint: null, or the instant until which it must wait. After a pause one delivery
   * is let through, and the others wait for what it finds.
   */
  async mustWait(id: string, { state, subscription }: Endpoint): Promise<Instant | null> {
    const now = this.#context.clock.now();
    if (!state.circuit) return null;
    if (now < state.circuit.until) return state.circuit.until;
    let until: Instant | null = null;
    await this.#changeState("probe", id, (current, at) => {
      until = current.circuit && at < current.circuit.until ? current.circuit.until : null;
      if (!current.circuit || until !== null) return null;
      return { ...current, circuit: probing(current.circuit, subscription.timeout, at) };
    });
    this.forget(id);
    return until;
  }

  /** The endpoint answered: a circuit that is open closes. */
  async answered(id: string, { state }: Endpoint): Promise<void> {
    this.#failures.delete(id);
    if (!state.circuit) return;
    await this.#changeState("close", id, (current) =>
      current.circuit ? { ...current, circuit: null } : null,
    );
    this.forget(id);
  }

  /** The endpoint did not answer, or with an error of its own. After ten in a row its circuit opens. */
  async failed(id: string, { state }: Endpoint): Promise<void> {
    const count = (this.#failures.get(id) ?? 0) + 1;
    this.#failures.set(id, count);
    if (!state.circuit && count < FAILURES_TO_OPEN) return;
    this.#failures.delete(id);
    await this.#changeState("open", id, (current, now) =>
      // Calls that were under way when it opened do not make its pause longer.
      !state.circuit && current.circuit ? null : { ...current, circuit: opened(current.circuit, now) },
    );
    this.forget(id);
    this.#context.logger.warn({ subscription: id }, "a webhook endpoint fails; its deliveries wait");
  }

  count(id: string, outcome: "delivered" | "failed" | "dead", error?: string): void {
    const tally = this.#tallies.get(id) ?? newTally();
    this.#tallies.set(id, tally);
    tally[outcome] += 1;
    const now = this.#context.clock.now();
    if (outcome === "delivered") tally.deliveredAt = now;
    else {
      tally.failedAt = now;
      tally.lastError = error?.slice(0, ERROR_LIMIT) ?? null;
    }
    if (this.#tallies.size === 1) this.#context.system.after(COUNTS_EVERY, () => this.loop.wake());
  }

  /** Adds the counts of this process to those in the store. */
  async flush(): Promise<void> {
    for (const [id, tally] of [...this.#tallies]) {
      this.#tallies.delete(id);
      const { delivered, failed, dead, deliveredAt, failedAt, lastError } = tally;
      await this.#changeState("count", id, (state) => ({
        ...state,
        delivered: state.delivered + delivered,
        failed: state.failed + failed,
        dead: state.dead + dead,
        deliveredAt: deliveredAt ?? state.deliveredAt,
        failedAt: failedAt ?? state.failedAt,
        lastError: lastError ?? state.lastError,
      }));
    }
  }

  /** Changes the state of a subscription that exists. */
  async #changeState(
    call: string,
    id: string,
    change: (state: WebhookState, now: Instant) => WebhookState | null,
  ): Promise<void> {
    await changeRecord(this.#context, call, STATES, id, (state, now) => {
      const body = state && change(state, now);
      return body && { body };
    });
  }
}

function newTally(): Tally {
  return { delivered: 0, failed: 0, dead: 0, deliveredAt: null, failedAt: null, lastError: null };
}
