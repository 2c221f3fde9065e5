import { refuseUnknownKeys } from "./core/errors.ts";
import { createIdSource } from "./core/ids.ts";
import { refuseOldNode } from "./core/node-version.ts";
import { keysOf } from "./core/option-keys.ts";
import { type Duration, type Instant, parseDuration } from "./core/time.ts";
import { checkClaimLimit } from "./core/timeout/timeout.ts";
import {
  type DueDeps,
  type DueOptions,
  type DueTimeout,
  dueTimeouts,
} from "./engine/dispatch/due-timeouts.ts";
import { DEFAULT_LEASES, type LeaseSettings, Timeouts } from "./engine/dispatch/timeout-api.ts";
import { consoleLogger } from "./engine/runtime/console-logger.ts";
import { EngineClock } from "./engine/runtime/engine-clock.ts";
import {
  isMongoAddress,
  type MongoTimeoutsOptions,
  OPEN_WITHIN,
  onThisMachine,
  openMongoTimeouts,
  openStore,
  retryUnreachable,
  unknownStore,
} from "./open.ts";
import type { Logger } from "./ports/log.ts";
import { BATCH_LIMIT, type Store } from "./ports/store.ts";
import type { System } from "./ports/system.ts";
import type { TimeoutStore } from "./ports/timeouts.ts";

export { CurfewError, type ErrorCode } from "./core/errors.ts";
export type { Json } from "./core/schema.ts";
export type { Duration, Instant, InstantInput } from "./core/time.ts";
export {
  ConcurrencyError,
  compareIds,
  type LeaseLoss,
  leaseLoss,
  type NewTimeout,
  type Owner,
  type SagaKey,
  type TimeoutId,
  type TimeoutRow,
} from "./core/timeout/timeout.ts";
export type { TimeoutHeaders } from "./core/timeout/timeout-headers.ts";
export type { When } from "./core/timeout/when.ts";
export type { DueOptions, DueTimeout } from "./engine/dispatch/due-timeouts.ts";
export type {
  CalendarOptions,
  CalendarPage,
  CallOptions,
  ClaimedTimeout,
  Timeouts,
} from "./engine/dispatch/timeout-api.ts";
export type { Timeout, TimeoutInput } from "./engine/dispatch/timeout-view.ts";
export type { MongoTimeoutsOptions } from "./open.ts";
export type {
  CalendarRequest,
  DueRequest,
  LeaseAnswer,
  LeasedTimeout,
  ReleasedTimeout,
  Revoked,
  TimeoutCounts,
  TimeoutFilter,
  TimeoutStore,
  Which,
} from "./ports/timeouts.ts";

/** A store that serves only timeouts. */
export interface LoneTimeoutStore {
  readonly timeouts: TimeoutStore;
  /** The store's time in whole milliseconds, the same for all processes. */
  clock(): Promise<Instant>;
  close(): Promise<void>;
  /** Left out if the store sends no hints: then only polling finds the timeouts of other processes. */
  listen?: Store["listen"];
}

export interface OpenTimeoutsOptions {
  /** `"sqlite:curfew.db"`, `"postgres://…"`, `"mongodb://…"`, `"memory:"`, or a store that you opened. */
  readonly store: string | LoneTimeoutStore;
  /** How long a claim holds. Default 5 min. */
  readonly lease?: Duration;
  /** How many timeouts a claim without a limit takes. Default 100. */
  readonly batch?: number;
  readonly logger?: Logger;
  /** How long to wait for a database that is still starting. Default 30 s. */
  readonly openWithin?: Duration;
  /** Clock, timers and randomness; tests pass virtual ones. */
  readonly system?: System;
}

const KEYS = keysOf<OpenTimeoutsOptions>({
  store: true,
  lease: true,
  batch: true,
  logger: true,
  openWithin: true,
  system: true,
});

export class OpenedTimeouts extends Timeouts implements AsyncDisposable {
  readonly #deps: DueDeps;
  readonly #settings: LeaseSettings;
  readonly #close: () => Promise<void>;

  constructor(deps: DueDeps, settings: LeaseSettings, close: () => Promise<void>) {
    super(deps, settings);
    this.#deps = deps;
    this.#settings = settings;
    this.#close = close;
  }

  /**
   * Yields due timeouts. Each is removed when the loop asks for the next one, and its lease is renewed until then.
   * Leaving the loop by `break` or an error releases the timeouts that it holds.
   */
  due(options: DueOptions = {}): AsyncGenerator<DueTimeout, void, undefined> {
    refuseUnknownKeys(options, "options", ["signal", "destinations", "poll", "onError"]);
    return dueTimeouts(this.#deps, this.#settings, options);
  }

  close(): Promise<void> {
    return this.#close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Opens a leased timeout store, without an engine. */
export async function openTimeouts(options: OpenTimeoutsOptions): Promise<OpenedTimeouts> {
  refuseUnknownKeys(options, "options", KEYS);
  refuseOldNode(process.versions.node);
  const { store: address, system = onThisMachine(), logger = consoleLogger() } = options;
  const lease = options.lease === undefined ? DEFAULT_LEASES.lease : parseDuration(options.lease, "lease");
  const { batch = DEFAULT_LEASES.batch } = options;
  checkClaimLimit(batch, BATCH_LIMIT, "batch");
  const within =
    options.openWithin === undefined
      ? OPEN_WITHIN
      : parseDuration(options.openWithin, "openWithin", { zero: true });
  if (typeof address !== "string" && (typeof address !== "object" || address === null))
    throw unknownStore(address);
  const store: LoneTimeoutStore =
    typeof address === "string"
      ? await retryUnreachable(() => openAddress(address, system, logger), within, system, logger)
      : address;
  return opened(store, system, { lease, batch });
}

function openAddress(address: string, system: System, logger: Logger): Promise<LoneTimeoutStore> {
  return isMongoAddress(address) ? openMongoTimeouts({ url: address, logger }) : openStore(address, system);
}

/** Opens a timeout store on MongoDB with what an address cannot say: your own client, a collection, a write concern. */
export function openMongoStore(
  options: MongoTimeoutsOptions & { readonly logger?: Logger },
): Promise<LoneTimeoutStore> {
  return openMongoTimeouts({ logger: consoleLogger(), ...options });
}

async function opened(
  store: LoneTimeoutStore,
  system: System,
  settings: LeaseSettings,
): Promise<OpenedTimeouts> {
  const clock = await EngineClock.open(system, store);
  const listeners = new Set<(dueAt: Instant) => void>();
  const listening = await store.listen?.((hint) => {
    const dueAt = "timeouts" in hint ? hint.timeouts : "missed" in hint ? clock.now() : undefined;
    if (dueAt !== undefined) for (const listener of listeners) listener(dueAt);
  });
  const deps: DueDeps = {
    timeouts: store.timeouts,
    clock,
    system,
    nextId: createIdSource(() => clock.now(), system.fill),
    onHint(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  return new OpenedTimeouts(deps, settings, async () => {
    clock.close();
    await listening?.[Symbol.asyncDispose]();
    await store.close();
  });
}
