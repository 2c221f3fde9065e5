import { type By, parseBy } from "../../core/audit/audit-entry.ts";
import { refuse, refuseUnknownKeys } from "../../core/errors.ts";
import {
  type EnqueueContext,
  type EnqueueOptions,
  prepareJob,
  preparePayload,
} from "../../core/job/envelope.ts";
import type { JobDefinition } from "../../core/job/job-definition.ts";
import type { Json } from "../../core/schema.ts";
import type { TimeoutId, TimeoutRow } from "../../core/timeout/timeout.ts";
import { parseWhen, type When } from "../../core/timeout/when.ts";
import type { TimeoutCounts } from "../../ports/timeouts.ts";
import type { EngineContext } from "../context.ts";
import { sha256 } from "../runtime/sha256.ts";
import type { DispatchCounts } from "./dispatch-counters.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { JOB_DESTINATION, jobPayload } from "./job-destination.ts";
import { type RevokedState, requeueTimeout, rescheduleTimeout, revokeTimeout } from "./operate-timeout.ts";
import { type CallOptions, Timeouts } from "./timeout-api.ts";
import { type Timeout, timeoutOf } from "./timeout-view.ts";

/** Handles a timeout; if it throws, the timeout comes again after a growing delay, ten times at most. */
export type TimeoutHandler = (
  timeout: Timeout,
  context: { readonly signal: AbortSignal },
) => unknown | Promise<unknown>;

/** A destination that is served in this process until it is closed. */
export interface ServedDestination extends AsyncDisposable {
  /** Stops it, and waits for what is under way. */
  close(): Promise<void>;
}

export interface ServeOptions {
  /** How many timeouts are handled at once. Default 100. */
  readonly concurrency?: number;
}

/** When and how to enqueue a job later: what `enqueue` takes, without what the timeout itself says. */
export interface EnqueueLaterOptions extends Omit<EnqueueOptions, "delay" | "at" | "id"> {
  readonly dueAt: When;
  /** A later call with the same key replaces an earlier one that is still waiting. */
  readonly key?: string;
}

export type TimeoutMetrics = TimeoutCounts & DispatchCounts;

/** The timeouts of an engine: the store by hand, and destinations that its dispatcher delivers to. */
export class EngineTimeouts extends Timeouts {
  readonly #parts: EngineContext;
  readonly #dispatcher: Dispatcher;

  constructor(parts: EngineContext, dispatcher: Dispatcher) {
    super({ ...parts, timeouts: parts.store.timeouts });
    this.#parts = parts;
    this.#dispatcher = dispatcher;
  }

  /** Handles the timeouts of a destination in this process. They are delivered at least once: go by their id. */
  serve(destination: string, handler: TimeoutHandler, options: ServeOptions = {}): ServedDestination {
    refuseUnknownKeys(options, "options", ["concurrency"]);
    if (typeof handler !== "function") throw refuse("invalid_option", "handler", handler, "pass a function");
    if (destination === JOB_DESTINATION || destination.startsWith("saga:")) {
      const fix = "choose another name: every engine serves jobs itself, and host() serves sagas";
      throw refuse("invalid_name", "destination", destination, fix);
    }
    const deliver = async (row: TimeoutRow, { signal }: { readonly signal: AbortSignal }) => {
      await handler(timeoutOf(row), { signal });
      return "sent" as const;
    };
    const stop = this.#dispatcher.serve(destination, { deliver }, options);
    return { close: stop, [Symbol.asyncDispose]: stop };
  }

  /** Enqueues a job when the time has come, unless it is cancelled or replaced before. Gives the id of the timeout. */
  async enqueue<Input>(
    definition: JobDefinition<Input, unknown, unknown>,
    payload: NoInfer<Input>,
    options: EnqueueLaterOptions,
  ): Promise<TimeoutId> {
    const { dueAt, key, ...said } = options;
    const { clock, nextId, store, documentLimit } = this.#parts;
    const now = clock.now();
    const when = parseWhen(dueAt, clock.anchor(), "options.dueAt");
    const template = prepareJob(definition, said, this.#context(Math.max(now, when.dueAt)));
    const text = await preparePayload(definition, payload, documentLimit);
    const timeout = {
      id: nextId(),
      destination: JOB_DESTINATION,
      dueAt: when.dueAt,
      payload: jobPayload(template, text, nextId),
      ...(key !== undefined && { key }),
      ...(when.kind === "wall-clock" && { wallClock: when.wallClock as unknown as Json }),
    };
    await store.timeouts.insert([timeout], { now, ...(said.tx !== undefined && { tx: said.tx }) });
    return timeout.id;
  }

  /**
   * Takes back one timeout by hand, and says what it was. Of a saga's timeout the saga knows at once that it is no longer
   * pending, also where its definition is not known.
   */
  revoke(id: TimeoutId, by?: By): Promise<RevokedState> {
    if (by) parseBy(by);
    return revokeTimeout(this.#parts, id, by);
  }

  /** Gives a pending timeout another instant by hand. One that is dead or leased is refused. */
  async reschedule(id: TimeoutId, when: When, by?: By): Promise<Timeout> {
    if (by) parseBy(by);
    return timeoutOf(await rescheduleTimeout(this.#parts, id, when, by));
  }

  /** Tries one dead timeout again, at once and with all its tries. */
  async revive(id: TimeoutId, by?: By): Promise<Timeout> {
    if (by) parseBy(by);
    return timeoutOf(await requeueTimeout(this.#parts, id, by));
  }

  #context(now: number): EnqueueContext {
    const { nextId, queues, settings, documentLimit } = this.#parts;
    return {
      now,
      nextId,
      hash: sha256,
      queueSettings: (queue) => queues.policyOf(queue),
      engineSettings: settings,
      documentLimit,
    };
  }

  /** How many there are in the store, and what the dispatcher of this process did. */
  async metrics(options: CallOptions = {}): Promise<TimeoutMetrics> {
    return { ...(await this.count(options)), ...this.#dispatcher.counts() };
  }
}
