import { refuse } from "../core/errors.ts";
import type { RoundLimits } from "../core/fair/round-limits.ts";
import type { PolicyOptions } from "../core/job/policy/policy.ts";
import type { Duration } from "../core/time.ts";
import type { Logger } from "../ports/log.ts";
import type { Store } from "../ports/store.ts";
import type { System } from "../ports/system.ts";
import type { Tracing } from "../ports/trace.ts";
import type { EventsOption } from "./events/event-journal.ts";
import type { EncryptionOptions } from "./runtime/aes-sealing.ts";
import type { WebhookSetup } from "./webhooks/webhook-delivery.ts";

export interface EngineOptions extends PolicyOptions {
  readonly store: Store;
  readonly system: System;
  readonly logger: Logger;
  /** The most bytes of a payload, result, checkpoint or progress note. Default 1 MB. */
  readonly documentLimit?: number;
  /** Whether events are recorded: see `EventsOption`. Left out: as the store's setting says. */
  readonly events?: EventsOption;
  /** How long events are kept. Default 1 day. */
  readonly keepEvents?: Duration;
  /** How long audit entries are kept. Default 90 days. */
  readonly keepAudit?: Duration;
  /** How long a process holds a due timeout or message. If it dies, another process takes it after that. Default 5 min. */
  readonly timeoutLease?: Duration;
  /** Where spans of enqueues and attempts go. */
  readonly tracing?: Tracing | undefined;
  /** The version of this process's zone data, such as "2026a". Pending wall-clock times are moved if it is newer. */
  readonly zoneData?: string | undefined;
  /**
   * `"producer"`: this process enqueues, sends and inspects, and leaves everything else to others. It makes no statement
   * while nobody calls it. `"operator"`: this process looks, and does what people ask for; what is due it leaves to
   * others. Left out: it does all.
   */
  readonly role?: EngineRole | undefined;
  /** Delivers webhooks in this process. Left out: it manages subscriptions, and leaves deliveries to others. */
  readonly webhooks?: WebhookSetup | undefined;
  /** Encrypts what handlers get and give before it reaches the store. */
  readonly encryption?: EncryptionOptions | undefined;
  /** The name of this machine, for `why`: who paused a queue, if the caller names no operator. */
  readonly host?: string | undefined;
  /** Factor for the rests of idle loops. Default 1. A test engine uses more, so that idle days pass faster. */
  readonly idlePollFactor?: number;
  /** How many writes are worth a second commit beside one that is under way. Default 100. Simulated worlds are too small for that. */
  readonly secondCommitFrom?: number;
  /** When a fair queue is busy, and how long its rounds are. A simulated world, in which little happens at once, uses less. */
  readonly roundLimits?: RoundLimits | undefined;
}

export type EngineRole = "producer" | "operator";

export function checkEvents(events: EventsOption | undefined): EventsOption | undefined {
  if (events === undefined || events === "off" || events === "durable") return events;
  throw refuse("invalid_option", "events", events, 'write "durable" or "off", or leave it out');
}

export function checkRole(role: unknown): void {
  if (role === undefined || role === "producer" || role === "operator") return;
  throw refuse("invalid_option", "role", role, 'write "producer" or "operator", or leave it out');
}

/** Refuses a call that an engine with this role leaves to others. The commands serve themselves over an operator. */
export function refuseRole(role: EngineRole | undefined, call: string): void {
  if (role === undefined || (role === "operator" && call === "service")) return;
  const fix = `it leaves running and serving to others: open an engine without a role for ${call}`;
  throw refuse("invalid_option", "role", role, fix);
}

export function checkDocumentLimit(limit: number): number {
  if (!Number.isInteger(limit) || limit < 1)
    throw refuse("invalid_limit", "documentLimit", limit, "use a whole number of bytes from 1");
  return limit;
}
