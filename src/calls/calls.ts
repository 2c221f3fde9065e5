import {
  type CallExplanation,
  type CallOptions,
  type CallPolicy,
  type CallSettings,
  explainCall,
  parseCall,
  resolveCall,
} from "../core/call/call-policy.ts";
import { refuse, refuseUnknownKeys } from "../core/errors.ts";
import type { Advice } from "../core/stats/advice.ts";
import { type Duration, parseDuration } from "../core/time.ts";
import { readKey } from "../core/user-values.ts";
import { guardedCallTracing } from "../engine/runtime/guarded-tracing.ts";
import { realSystem } from "../engine/runtime/real-system.ts";
import { followDeadlines } from "../ports/ambient.ts";
import { type Logger, silentLogger } from "../ports/log.ts";
import type { System } from "../ports/system.ts";
import type { CallTrace, CallTracing } from "../ports/trace.ts";
import { CallPolicyCache } from "./call-policy-cache.ts";
import { type CallCounts, CallStats } from "./call-stats.ts";
import { checkName, checkSignal } from "./check-options.ts";
import { DeadlineList } from "./deadline-list.ts";
import { limitedStream, type StreamOptions } from "./limited-stream.ts";
import {
  type CallContext,
  type CallDeps,
  type CallEnd,
  type CallFunction,
  RunningCall,
  type StreamEnd,
} from "./running-call.ts";
import type { StreamSource } from "./stream-source.ts";

export interface CallsOptions {
  /** Limits for calls that name none. */
  readonly defaults?: CallOptions;
  /** Default: silent. */
  readonly logger?: Logger;
  /** The clock and the timers; tests pass a virtual one. */
  readonly system?: System;
  /** `openTelemetry()` of `curfew/tracing` makes a span of each call. Default: none. */
  readonly tracing?: CallTracing;
  /** Called at the end of each call. What it throws is logged and costs the call nothing. */
  readonly onEnd?: (end: CallEnd) => void;
}

/** The limits of one call, and how it ends otherwise. */
export interface WithinOptions extends CallOptions {
  /** For counters, warnings and `advise`. Default `"within"`. */
  readonly name?: string;
  /** Ends the call when the caller gives up. */
  readonly signal?: AbortSignal;
  /** Whether the call ignores the deadline of the handler, step or call around it. */
  readonly detach?: boolean;
}

const OWN_KEYS = ["name", "signal", "detach"];
const UNNAMED = "within";

function checkOwnOptions({ name, signal, detach }: WithinOptions, field: string): void {
  if (name !== undefined) checkName(name, `${field}.name`);
  if (signal !== undefined) checkSignal(signal, `${field}.signal`);
  if (detach !== undefined && typeof detach !== "boolean")
    throw refuse("invalid_option", `${field}.detach`, detach, "write true or false");
}

/** A function with limits, made by `defineCall`. */
export interface DefinedCall<Input, Output> {
  (input: Input, options?: Omit<WithinOptions, "name">): Promise<Output>;
  readonly callName: string;
  /** Which source decides each limit. */
  explain(options?: CallOptions): CallExplanation;
}

export interface CallDefinition<Input, Output> extends CallOptions {
  readonly name: string;
  readonly run: (input: Input, context: CallContext) => Output | PromiseLike<Output>;
}

/** Names whose late results were warned of. A warning per result would fill a log. */
const MOST_WARNED = 1_000;

/** Calls that share a timer, defaults and counters. */
export class Calls implements CallDeps {
  readonly system: System;
  readonly deadlines: DeadlineList;
  readonly #logger: Logger;
  readonly #defaults: CallSettings | undefined;
  readonly #onEnd: ((end: CallEnd) => void) | undefined;
  readonly #tracing: CallTracing | undefined;
  readonly #stats = new CallStats();
  readonly #warned = new Set<string>();
  readonly #policies = new CallPolicyCache();

  constructor(options: CallsOptions = {}) {
    refuseUnknownKeys(options, "createCalls", ["defaults", "logger", "system", "tracing", "onEnd"]);
    this.system = options.system ?? realSystem;
    this.deadlines = new DeadlineList(this.system);
    this.#logger = options.logger ?? silentLogger;
    this.#defaults = options.defaults && parseCall(options.defaults, "createCalls.defaults");
    this.#onEnd = options.onEnd;
    const { tracing } = options;
    if (tracing !== undefined && typeof readKey(tracing, "call") !== "function")
      throw refuse(
        "invalid_option",
        "createCalls.tracing",
        tracing,
        "pass openTelemetry() of curfew/tracing",
      );
    this.#tracing = tracing && guardedCallTracing(tracing, this.#logger);
    followDeadlines();
  }

  /**
   * Calls the function under limits. The promise settles at the hard deadline at the latest, whatever the function does
   * (SEMANTICS 10).
   */
  readonly within = <Value>(options: WithinOptions, run: CallFunction<Value>): Promise<Value> => {
    if (typeof run !== "function") throw refuse("invalid_option", "within", run, "pass a function");
    const policy = this.#policies.policyOf(options, this.#parse);
    checkOwnOptions(options, "within");
    if (policy.adaptive && options.name === undefined)
      throw refuse(
        "invalid_option",
        "within.name",
        undefined,
        "name the calls whose run times an adaptive limit follows",
      );
    return this.#start(options.name ?? UNNAMED, policy, run, options);
  };

  readonly #parse = (options: WithinOptions): CallPolicy =>
    resolveCall({ defaults: this.#defaults, call: parseCall(options, "within", OWN_KEYS) });

  /** Names a function and its limits once. */
  readonly defineCall = <Input, Output>(
    definition: CallDefinition<Input, Output>,
  ): DefinedCall<Input, Output> => {
    const { name, run } = definition;
    checkName(name, "defineCall.name");
    if (typeof run !== "function") throw refuse("invalid_option", "defineCall.run", run, "pass a function");
    const defaults = this.#defaults;
    const settings = parseCall(definition, "defineCall", ["name", "run"]);
    const own = resolveCall({ defaults, definition: settings });
    const policies = new CallPolicyCache();
    const parse = (options: WithinOptions) =>
      resolveCall({ defaults, definition: settings, call: parseCall(options, name, OWN_KEYS) });
    const call = (input: Input, options?: Omit<WithinOptions, "name">) => {
      const enter = (context: CallContext) => run(input, context);
      if (options === undefined) return this.#start(name, own, enter, options);
      const policy = policies.policyOf(options, parse);
      checkOwnOptions(options, name);
      return this.#start(name, policy, enter, options);
    };
    const explain = (options?: CallOptions) =>
      explainCall({ defaults, definition: settings, call: options && parseCall(options, name) }, (rule) =>
        this.#stats.learned(name, rule),
      );
    return Object.assign(call, { callName: name, explain });
  };

  /** Limits the waits for the items of a stream (SEMANTICS 10.7). */
  readonly limitStream = <Item>(
    options: StreamOptions,
    source: StreamSource<Item>,
  ): AsyncIterableIterator<Item> => limitedStream(this, options, source);

  /** Which source decides each limit of a call. */
  explain(options: CallOptions): CallExplanation {
    return explainCall({ defaults: this.#defaults, call: parseCall(options, "explain") });
  }

  /** The counts of each name since the start. Beyond 500 names, everything is counted under "other". */
  counts(): CallCounts[] {
    return this.#stats.snapshot();
  }

  /** What the calls of a name say about its `attempt`; `attempt` is another one to try on them. */
  advise(name: string, options: { readonly attempt?: Duration } = {}): Advice | undefined {
    const { attempt } = options;
    return this.#stats.advise(
      name,
      attempt === undefined ? undefined : parseDuration(attempt, "advise.attempt"),
    );
  }

  /** How many deadlines wait. */
  get pending(): number {
    return this.deadlines.count;
  }

  #start<Value>(
    name: string,
    policy: CallPolicy,
    run: CallFunction<Value>,
    options: Pick<WithinOptions, "signal" | "detach"> | undefined,
  ): Promise<Value> {
    const { adaptive } = policy;
    const limit = adaptive && this.#stats.of(name).limitOf(adaptive, this.system);
    const call = new RunningCall<Value>(this, {
      name,
      policy: limit ? limit.applyTo(policy) : policy,
      run,
      signal: options?.signal,
      isDetached: options?.detach === true,
    });
    return call.start();
  }

  trace(name: string): CallTrace | undefined {
    return this.#tracing?.call(name);
  }

  ended(end: CallEnd): void {
    this.#stats.of(end.name).ended(end);
    if (!this.#onEnd) return;
    try {
      this.#onEnd(end);
    } catch (error) {
      this.#logger.warn({ call: end.name, error }, "onEnd of createCalls threw");
    }
  }

  streamEnded(name: string, end: StreamEnd): void {
    this.#stats.of(name).streamEnded(end);
  }

  wasCut(name: string, policy: CallPolicy): void {
    this.#stats.of(name).wasCut(policy);
  }

  ignored(name: string): void {
    this.#stats.of(name).ignored += 1;
    if (this.#warned.has(name) || this.#warned.size >= MOST_WARNED) return;
    this.#warned.add(name);
    this.#logger.warn(
      { call: name },
      "a function ended after its deadline, and its result was dropped; end at the signal, or raise the limit",
    );
  }

  stuck(name: string): void {
    this.#stats.of(name).stuck += 1;
  }

  unstuck(name: string): void {
    this.#stats.of(name).stuck -= 1;
  }
}
