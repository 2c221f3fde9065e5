import { refuse } from "../core/errors.ts";
import type { PolicyOptions } from "../core/job/policy/policy.ts";
import { type Duration, type Instant, parseDuration, parseInstant } from "../core/time.ts";
import { Engine } from "../engine/engine.ts";
import type { WebhookSetup } from "../engine/webhooks/webhook-delivery.ts";
import { type Logger, silentLogger } from "../ports/log.ts";
import type { Store } from "../ports/store.ts";
import type { Tracing } from "../ports/trace.ts";
import { createMemoryStore } from "../stores/memory/memory-store.ts";
import { createSimSystem, type SimSystem } from "./sim-clock.ts";

export interface TestEngineOptions extends PolicyOptions {
  /** The same seed gives the same jitter, ids and order. Default 1. */
  readonly seed?: number;
  /** The virtual time at the start. Default 2030-01-01T00:00:00Z. */
  readonly startAt?: string | Date;
  /** Your own store in memory, or a function that opens one on the virtual clock. Default: curfew's memory store. */
  readonly store?: Store | ((clock: () => Instant) => Store | Promise<Store>);
  /** Whether events are recorded, as in `openEngine`. */
  readonly events?: "durable" | "off";
  readonly keepEvents?: Duration;
  readonly keepAudit?: Duration;
  /** The most bytes of a payload or result, as in `openEngine`. */
  readonly documentLimit?: number;
  /** What the engine leaves to others, as in `openEngine`. */
  readonly role?: "producer" | "operator";
  /** Delivers webhooks through your own sender. */
  readonly webhooks?: WebhookSetup;
  /** Default: silent. */
  readonly logger?: Logger;
  /** Receives spans, as in `openEngine`. */
  readonly tracing?: Tracing;
}

/** An engine whose time stands still until the test moves it. */
export interface TestEngine extends AsyncDisposable {
  readonly engine: Engine;
  /** The virtual machine of the engine, for pauses and jumps of the wall clock. */
  readonly system: SimSystem;
  /**
   * Lets this much virtual time pass. Jobs, retries, timeouts and timers run in the order in which they are due,
   * including those that they cause.
   */
  advance(delay: Duration): Promise<void>;
  /** Runs everything that needs no time. */
  settle(): Promise<void>;
  /** For handlers under test: resolves after this much virtual time, or rejects when the signal aborts. */
  sleep(delay: Duration, signal?: AbortSignal): Promise<void>;
  /** The virtual time. */
  now(): Instant;
  close(): Promise<void>;
}

const IDLE_POLL_FACTOR = 60;

/** Tests a two-hour timeout in milliseconds: `await advance("2h")`. */
export async function openTestEngine(options: TestEngineOptions = {}): Promise<TestEngine> {
  const startAt = parseInstant(options.startAt ?? "2030-01-01T00:00:00Z", "startAt");
  const system = createSimSystem({ seed: options.seed ?? 1, startAt });
  // The store's clock is virtual time itself: a jump of the wall clock must not move it.
  const now = () => Math.floor(startAt + system.monotonic());
  const { seed: _seed, startAt: _startAt, store: given, logger = silentLogger, ...rest } = options;
  const store = (typeof given === "function" ? await given(now) : given) ?? createMemoryStore({ clock: now });
  if (store.capabilities.durable !== "none") {
    if (typeof given === "function") await store.close();
    const fix =
      "it waits for a real disk or network, and virtual time does not: leave it out, or use openEngine";
    throw refuse("invalid_option", "options.store", store.capabilities.name, fix);
  }
  // The memory store loses no hints, so idle loops need not poll every second, and idle days pass quickly.
  const idlePollFactor = given === undefined ? IDLE_POLL_FACTOR : 1;
  const engine = await Engine.open({ ...rest, store, system, logger, idlePollFactor });
  const close = async () => {
    const closing = engine.close({ drain: "0s" });
    // Closing waits until handlers have heard the signal, which takes virtual time.
    await system.advance(10_000);
    await closing;
  };
  return {
    engine,
    system,
    now,
    close,
    advance: (delay) => system.advance(parseDuration(delay, "delay", { zero: true })),
    settle: () => system.settle(),
    sleep: (delay, signal) => sleep(system, parseDuration(delay, "delay", { zero: true }), signal),
    [Symbol.asyncDispose]: close,
  };
}

function sleep(system: SimSystem, delay: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      timer.cancel();
      reject(signal?.reason);
    };
    const timer = system.after(delay, () => {
      signal?.removeEventListener("abort", abort);
      resolve();
    });
    if (signal?.aborted) abort();
    else signal?.addEventListener("abort", abort, { once: true });
  });
}
