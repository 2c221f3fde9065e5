import { type By, parseBy } from "../../core/audit/audit-entry.ts";
import { refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { type Cell, cellOfId } from "../../core/home/cell.ts";
import { cellOfTimeoutKey } from "../../core/home/cell-of-row.ts";
import type { IdSource } from "../../core/ids.ts";
import { type EnqueueOptions, prepareJob, preparePayload, stamp } from "../../core/job/enqueue/envelope.ts";
import type { JobDefinition } from "../../core/job/job-definition.ts";
import type { TimeoutId, TimeoutRow } from "../../core/timeout/timeout.ts";
import { parseWhen, type When, wallClockOf } from "../../core/timeout/when.ts";
import type { Revoked, TimeoutCounts, Which } from "../../ports/timeouts.ts";
import type { EngineContext } from "../context.ts";
import { enqueueContext } from "../enqueue/enqueuer.ts";
import type { DispatchCounts } from "./dispatch-counters.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { JOB_DESTINATION } from "./job-destination.ts";
import {
  cancelTimeouts,
  type RevokedState,
  requeueTimeout,
  rescheduleTimeout,
  revokeTimeout,
} from "./operate-timeout.ts";
import { type CallOptions, Timeouts } from "./timeout-api.ts";
import { type Timeout, timeoutOf } from "./timeout-view.ts";

/** Handles a timeout. If it throws, the timeout comes again after a growing delay, ten times at most. */
export type TimeoutHandler = (
  timeout: Timeout,
  context: { readonly signal: AbortSignal },
) => unknown | Promise<unknown>;

/** A destination that this process serves until `close`. */
export interface ServedDestination extends AsyncDisposable {
  /** Stops it, and waits for running handlers. */
  close(): Promise<void>;
}

export interface ServeOptions {
  /** How many handlers run at once. Default 100. */
  readonly concurrency?: number;
}

/** Options of `enqueue`, without those that the timeout replaces. */
export interface EnqueueLaterOptions extends Omit<EnqueueOptions, "delay" | "at" | "id"> {
  readonly dueAt: When;
  /** A later call with the same key replaces a timeout that still waits. */
  readonly key?: string;
}

export type TimeoutMetrics = TimeoutCounts & DispatchCounts;

/** The timeouts of an engine: the timeout store, and destinations that its dispatcher delivers to. */
export class EngineTimeouts extends Timeouts {
  readonly #context: EngineContext;
  readonly #dispatcher: Dispatcher;
  readonly #assertServes: () => void;
  readonly #fresh: () => Promise<void> | undefined;

  constructor(
    context: EngineContext,
    dispatcher: Dispatcher,
    { assertServes, fresh }: { assertServes: () => void; fresh: () => Promise<void> | undefined },
  ) {
    super({ ...context, timeouts: context.store.timeouts, fresh });
    this.#assertServes = assertServes;
    this.#fresh = fresh;
    this.#context = context;
    this.#dispatcher = dispatcher;
  }

  /** Handles the timeouts of a destination in this process, at least once each: their id shows repeats. */
  serve(destination: string, handler: TimeoutHandler, options: ServeOptions = {}): ServedDestination {
    refuseUnknownKeys(options, "options", ["concurrency"]);
    this.#assertServes();
    if (typeof handler !== "function") throw refuse("invalid_option", "handler", handler, "pass a function");
    if (destination === JOB_DESTINATION || destination.startsWith("saga:")) {
      const fix = "use another name: every engine serves job timeouts itself, and host() serves sagas";
      throw refuse("invalid_name", "destination", destination, fix);
    }
    const deliver = async (row: TimeoutRow, { signal }: { readonly signal: AbortSignal }) => {
      await handler(timeoutOf(row), { signal });
      return "sent" as const;
    };
    const stop = this.#dispatcher.serve(destination, { deliver }, options);
    return { close: stop, [Symbol.asyncDispose]: stop };
  }

  /** Enqueues a job at an instant, unless its timeout is cancelled or replaced before. Returns the timeout's id. */
  async enqueue<Input>(
    definition: JobDefinition<Input, unknown, unknown>,
    payload: NoInfer<Input>,
    options: EnqueueLaterOptions,
  ): Promise<TimeoutId> {
    const { dueAt, key, ...enqueueOptions } = options ?? {};
    await this.#fresh();
    const { clock, nextId, store, documentLimit, calendars } = this.#context;
    const now = clock.now();
    const when = parseWhen(dueAt, clock.anchor(), "options.dueAt", calendars);
    const wallClock = wallClockOf(when);
    const template = prepareJob(
      definition,
      enqueueOptions,
      enqueueContext(this.#context, Math.max(now, when.dueAt)),
    );
    const text = await preparePayload(definition, payload, documentLimit);
    // A job that is prepared for an instant: its own instants count from there.
    const job = stamp(template, text, nextId);
    const timeout = {
      id: nextId(cellOfLaterJob(nextId, job.id, key)),
      destination: JOB_DESTINATION,
      dueAt: when.dueAt,
      payload: JSON.stringify(job),
      ...(key !== undefined && { key }),
      ...(wallClock !== undefined && { wallClock }),
    };
    await store.timeouts.insert([timeout], {
      now,
      ...(enqueueOptions.tx !== undefined && { tx: enqueueOptions.tx }),
    });
    return timeout.id;
  }

  /**
   * Revokes one timeout and returns what it was. A saga's timeout leaves the saga's pending list in the same commit,
   * even if this process has no definition of the saga.
   */
  revoke(id: TimeoutId, by?: By): Promise<RevokedState> {
    if (by) parseBy(by);
    return revokeTimeout(this.#context, id, by);
  }

  /** Cancels timeouts for a named caller, in the audit too. `cancel` does it for the program itself. */
  cancelAs(which: Which, by: By): Promise<Revoked> {
    return cancelTimeouts(this.#context, which, parseBy(by));
  }

  /** Moves a pending timeout to another instant. Refused for a dead or leased one. */
  async reschedule(id: TimeoutId, when: When, by?: By): Promise<Timeout> {
    if (by) parseBy(by);
    return timeoutOf(await rescheduleTimeout(this.#context, id, when, by));
  }

  /** Makes a dead timeout due at once, with all its tries. */
  async revive(id: TimeoutId, by?: By): Promise<Timeout> {
    if (by) parseBy(by);
    return timeoutOf(await requeueTimeout(this.#context, id, by));
  }

  /** Counts of the store, and of this process's dispatcher. */
  async metrics(options: CallOptions = {}): Promise<TimeoutMetrics> {
    return { ...(await this.count(options)), ...this.#dispatcher.counts() };
  }
}

/** In the home of its key, or beside its job, so that its delivery is one unit. */
function cellOfLaterJob({ namePrefix }: IdSource, job: string, key: string | undefined): Cell | undefined {
  if (namePrefix === undefined) return undefined;
  return key === undefined ? cellOfId(job) : cellOfTimeoutKey(JOB_DESTINATION, namePrefix + key);
}
