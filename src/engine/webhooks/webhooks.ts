import { type By, parseBy } from "../../core/audit/audit-entry.ts";
import { CurfewError, checkCount, refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { eventId } from "../../core/event/event-id.ts";
import { decide } from "../../core/job/decide/decide.ts";
import type { Json } from "../../core/schema.ts";
import { type Duration, formatDuration, type Instant } from "../../core/time.ts";
import { type CircuitState, circuitState } from "../../core/webhook/circuit.ts";
import { type AllowList, parseAllowList } from "../../core/webhook/endpoint.ts";
import { checkSecret, newSecret, rotated, signingSecrets } from "../../core/webhook/secret.ts";
import {
  lanesOf,
  parseSubscription,
  type Subscription,
  WEBHOOK_KEYS,
  type WebhookOptions,
} from "../../core/webhook/subscription.ts";
import { BATCH_LIMIT, type Effect } from "../../ports/store.ts";
import type { WebhookSender } from "../../ports/webhooks.ts";
import { changeRecord, commitJobs, commitUnits } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";
import { auditEffects } from "../events/audit-log.ts";
import type { EventJournal } from "../events/event-journal.ts";
import { type DeliveriesOptions, DeliveryLog, type DeliveryPage, type DeliveryView } from "./delivery-log.ts";
import type { FollowerDeps } from "./follower.ts";
import type { WebhookCounts } from "./webhook-counters.ts";
import {
  CURSORS,
  MOST_SUBSCRIPTIONS,
  NEW_STATE,
  SECRETS,
  STATES,
  WEBHOOKS,
  type WebhookState,
} from "./webhook-records.ts";

/** A new subscription. */
export interface NewWebhook extends WebhookOptions {
  readonly url: string;
  readonly events: readonly string[];
  /** 16 to 256 visible ASCII characters. Default: a new one, which only this call returns. */
  readonly secret?: string;
}

/** A subscription without its secret and the values of its headers, which nobody can read. */
export interface WebhookView
  extends Omit<Subscription, "batch" | "timeout" | "retry" | "headers">,
    Omit<WebhookState, "circuit"> {
  readonly id: string;
  readonly headerNames: readonly string[];
  readonly batch: { readonly size: number; readonly within: Duration };
  readonly timeout: Duration;
  readonly retry: { readonly attempts: number; readonly delays: readonly Duration[] };
  readonly circuit: { readonly state: CircuitState; readonly until: Instant | null };
}

/** `secret` is null if the caller chose it. */
export interface CreatedWebhook {
  readonly webhook: WebhookView;
  readonly secret: string | null;
}

export interface RotateOptions {
  readonly secret?: string;
  /** How long calls are signed with both secrets. Default 1 day. */
  readonly overlap?: Duration;
}

export interface WebhookTest {
  /** Whether the endpoint answered 2xx. */
  readonly ok: boolean;
  readonly status: number | null;
  readonly elapsed: number;
  readonly text: string;
  /** Why no status came. */
  readonly error: string | null;
}

/** What the room needs from its engine. */
export interface WebhooksDeps extends FollowerDeps {
  readonly journal: Pick<EventJournal, "turnOn" | "isForbidden">;
  /** Undefined in a process that delivers nothing. */
  readonly sender: WebhookSender | undefined;
  readonly counts: () => WebhookCounts | null;
  /** A subscription was changed here. */
  readonly changed: (id: string) => void;
}

const TEST_WITHIN = 10_000;
const NOTHING_ALLOWED = parseAllowList([], "allow");
const CANCELLED_AT_ONCE = 200;

/** Subscriptions of events to endpoints over HTTP, and what was delivered (SEMANTICS 11). */
export class Webhooks {
  readonly #context: EngineContext;
  readonly #host: WebhooksDeps;
  readonly #by: By | undefined;
  readonly #log: DeliveryLog;

  constructor(context: EngineContext, host: WebhooksDeps, by?: By) {
    this.#context = context;
    this.#host = host;
    this.#by = by;
    this.#log = new DeliveryLog(context, host);
  }

  /** The same webhooks; each change writes an audit entry for this operator in its commit. */
  as(by: By): Webhooks {
    return new Webhooks(this.#context, this.#host, parseBy(by));
  }

  /** Subscribes an endpoint to events that are recorded from now on. Turns the journal on. */
  async create(options: NewWebhook): Promise<CreatedWebhook> {
    this.#context.assertOpen();
    refuseUnknownKeys(options, "", [...WEBHOOK_KEYS, "secret"]);
    const { secret: given, ...rest } = options;
    const { store, clock, nextId, recorder, system } = this.#context;
    const now = clock.now();
    const body = parseSubscription(rest, null, { allowed: this.#allowed, now });
    const secret =
      given === undefined ? newSecret((bytes) => system.fill(bytes)) : checkSecret(given, "secret");
    if ((await WEBHOOKS.list(store, null, MOST_SUBSCRIPTIONS)).length >= MOST_SUBSCRIPTIONS) {
      const text = `create: there are ${MOST_SUBSCRIPTIONS} subscriptions, which is the most; delete one first`;
      throw new CurfewError("invalid_state", text);
    }
    await this.#host.journal.turnOn();
    const id = `sub_${nextId()}`;
    const { cursor } = await store.inspect.latestEvents(1);
    const effects: Effect[] = [
      WEBHOOKS.put(id, body, null),
      SECRETS.put(id, { secret }, null),
      STATES.put(id, NEW_STATE, null),
      CURSORS.put(id, { cursor, at: now }, null),
      ...recorder.effects("webhook.subscription.created", {
        at: now,
        subject: id,
        data: { subscription: id },
      }),
      ...this.#audit("create", id, now, { host: new URL(body.url).host, events: body.events as Json }),
    ];
    await commitUnits(this.#context, [{ when: [WEBHOOKS.guard(id, 0)], effects }]);
    this.#host.changed(id);
    return { webhook: viewOf(id, body, NEW_STATE, now), secret: given === undefined ? secret : null };
  }

  /** Changes the fields that are named. Deliveries that exist go to the new URL. */
  async update(id: string, options: WebhookOptions): Promise<WebhookView> {
    this.#context.assertOpen();
    refuseUnknownKeys(options, "", WEBHOOK_KEYS);
    if (!isId(id)) throw unknownWebhook("update", id);
    const changed = await changeRecord(this.#context, "update", WEBHOOKS, id, (before, now) => {
      if (!before) throw unknownWebhook("update", id);
      const body = parseSubscription(options, before, { allowed: this.#allowed, now });
      return { body, effects: this.#audit("update", id, now, { fields: Object.keys(options) }) };
    });
    // A new URL is a new endpoint, which has not failed yet.
    if (options.url !== undefined)
      await changeRecord(this.#context, "update", STATES, id, (state) =>
        state?.circuit ? { body: { ...state, circuit: null } } : null,
      );
    this.#host.changed(id);
    const state = await STATES.load(this.#context.store, id);
    return viewOf(id, changed?.body as Subscription, state?.body ?? NEW_STATE, this.#context.clock.now());
  }

  /** Deletes a subscription and cancels its deliveries. False if there is none. */
  async delete(id: string): Promise<boolean> {
    this.#context.assertOpen();
    if (!isId(id)) return false;
    const { recorder } = this.#context;
    const changed = await changeRecord(this.#context, "delete", WEBHOOKS, id, (before, now) => {
      if (!before) return null;
      const data = { subscription: id };
      const effects = [
        ...[SECRETS, STATES, CURSORS].map((kind) => kind.remove(id)),
        ...recorder.effects("webhook.subscription.deleted", { at: now, subject: id, data }),
        ...this.#audit("delete", id, now, {}),
      ];
      return { body: null, effects };
    });
    this.#host.changed(id);
    if (changed) await this.#cancelDeliveries(id);
    return changed !== null;
  }

  async get(id: string): Promise<WebhookView | null> {
    if (!isId(id)) return null;
    const { store, clock } = this.#context;
    const [row, state] = await store.records.load([WEBHOOKS.key(id), STATES.key(id)]);
    if (!row) return null;
    return viewOf(id, WEBHOOKS.read(row).body, state ? STATES.read(state).body : NEW_STATE, clock.now());
  }

  /** Subscriptions in the order of their ids, which is that of their creation. */
  async list(page: { readonly after?: string; readonly limit?: number } = {}): Promise<WebhookView[]> {
    refuseUnknownKeys(page, "page", ["after", "limit"]);
    const { after = null, limit = 100 } = page;
    checkCount(limit, "page.limit", BATCH_LIMIT);
    if (after !== null && !isId(after))
      throw refuse("invalid_option", "page.after", after, "use the id of a subscription");
    const { store, clock } = this.#context;
    const found = await WEBHOOKS.list(store, after, limit);
    if (found.length === 0) return [];
    const states = await store.records.load(found.map(({ name }) => STATES.key(name)));
    return found.map(({ name, body }, index) => {
      const state = states[index];
      return viewOf(name, body, state ? STATES.read(state).body : NEW_STATE, clock.now());
    });
  }

  /** Gives a subscription a new secret. Calls are signed with both until the overlap is over. */
  async rotate(id: string, options: RotateOptions = {}): Promise<{ readonly secret: string | null }> {
    this.#context.assertOpen();
    refuseUnknownKeys(options, "rotate", ["secret", "overlap"]);
    if (!isId(id)) throw unknownWebhook("rotate", id);
    const { system } = this.#context;
    const { secret: given, overlap } = options;
    const secret =
      given === undefined ? newSecret((bytes) => system.fill(bytes)) : checkSecret(given, "secret");
    await changeRecord(this.#context, "rotate", SECRETS, id, (before, now) => {
      if (!before) throw unknownWebhook("rotate", id);
      return { body: rotated(before, secret, overlap, now), effects: this.#audit("rotate", id, now, {}) };
    });
    this.#host.changed(id);
    return { secret: given === undefined ? secret : null };
  }

  /** Calls the endpoint once with an event `webhook.test`, and returns what it answers within 10 s. */
  async test(id: string): Promise<WebhookTest> {
    this.#context.assertOpen();
    const { sender } = this.#host;
    if (!sender) {
      const fix = "call it in a process that delivers webhooks, such as curfew serve";
      throw refuse("invalid_option", "webhooks", undefined, fix);
    }
    if (!isId(id)) throw unknownWebhook("test", id);
    const { store, clock, system, nextId } = this.#context;
    const [webhook, secrets] = await Promise.all([WEBHOOKS.load(store, id), SECRETS.load(store, id)]);
    if (!webhook || !secrets) throw unknownWebhook("test", id);
    const at = clock.now();
    await commitUnits(this.#context, [{ effects: this.#audit("test", id, at, {}) }]);
    const stop = new AbortController();
    const within = Math.min(webhook.body.timeout, TEST_WITHIN);
    const late = new Error(`no answer within ${formatDuration(within)}`);
    const timer = system.after(within, () => stop.abort(late), { keepAlive: true });
    const from = system.monotonic();
    const delivery = nextId();
    try {
      const { status, elapsed, text } = await sender.send({
        url: webhook.body.url,
        subscription: id,
        delivery: `del_${delivery}`,
        events: [{ id: eventId(at, delivery), cursor: "0", name: "webhook.test", at, subject: id, data: {} }],
        isBatch: webhook.body.batch.size > 1,
        secrets: signingSecrets(secrets.body, at),
        at,
        headers: webhook.body.headers ?? {},
        signal: stop.signal,
      });
      return { ok: status >= 200 && status < 300, status, elapsed, text, error: null };
    } catch (error) {
      const message = stop.signal.aborted
        ? late.message
        : error instanceof Error
          ? error.message
          : String(error);
      return { ok: false, status: null, elapsed: system.monotonic() - from, text: "", error: message };
    } finally {
      timer.cancel();
    }
  }

  /** Deliveries, the newest first. They are kept for a day if they were delivered, else for 14 days. */
  deliveries(options: DeliveriesOptions = {}): Promise<DeliveryPage> {
    return this.#log.list(options);
  }

  delivery(id: string): Promise<DeliveryView | null> {
    return this.#log.get(id);
  }

  /** Sends a delivery again, whether it is dead, waits for its retry or was delivered. */
  redeliver(id: string): Promise<DeliveryView> {
    this.#context.assertOpen();
    return this.#log.redeliver(id, this.#by);
  }

  /** Counts of the calls of this process; null if it delivers nothing. */
  counts(): WebhookCounts | null {
    return this.#host.counts();
  }

  get #allowed(): AllowList {
    return this.#host.sender?.allowed ?? NOTHING_ALLOWED;
  }

  #audit(
    action: string,
    id: string,
    now: Instant,
    details: { readonly [key: string]: Json },
  ): readonly Effect[] {
    const about = { details: { subscription: id, ...details } };
    return auditEffects(this.#context, this.#by, `webhook.${action}`, about, now);
  }

  /** Those that are being called end by themselves: their handler finds no subscription at the next attempt. */
  async #cancelDeliveries(id: string): Promise<void> {
    const { store, clock, random } = this.#context;
    for (const lane of lanesOf(id)) {
      for (;;) {
        const rows = await store.inspect.limitJobs(lane, null, CANCELLED_AT_ONCE);
        const now = clock.now();
        const decided = rows.flatMap((row) => {
          const decision = decide(row, { type: "cancel" }, now, random);
          return decision.ok ? [{ row, decision, at: now, by: "outsider" as const }] : [];
        });
        const outcomes = await commitJobs(this.#context, decided);
        if (rows.length < CANCELLED_AT_ONCE || !outcomes.some(({ ok }) => ok)) break;
      }
    }
  }
}

function viewOf(id: string, body: Subscription, state: WebhookState, now: Instant): WebhookView {
  const { batch, timeout, retry, headers = {}, ...rest } = body;
  const { circuit, ...counts } = state;
  const text = (length: number) => (length === 0 ? "0s" : formatDuration(length)) as Duration;
  return {
    id,
    ...rest,
    headerNames: Object.keys(headers),
    batch: { size: batch.size, within: text(batch.within) },
    timeout: text(timeout),
    retry: { attempts: retry.attempts, delays: retry.delays.map(text) },
    circuit: { state: circuitState(circuit, now), until: circuit?.until ?? null },
    ...counts,
  };
}

const ID = /^sub_[0-9a-f-]{36}$/;

/** Other texts are no ids, and not every store can look for them. */
function isId(id: string): boolean {
  return ID.test(id);
}

function unknownWebhook(call: string, id: string): CurfewError {
  return new CurfewError(
    "not_found",
    `${call}: there is no webhook ${JSON.stringify(id)}; webhooks.list() has all ids`,
  );
}
