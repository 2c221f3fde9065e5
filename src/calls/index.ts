/*
 * `curfew/calls`: limits for any async function and any stream of a program, without an engine or a store (SEMANTICS 10).
 */
import { Calls, type CallsOptions } from "./calls.ts";

export type { CallExplanation, CallOptions } from "../core/call/call-policy.ts";
export { StopError, TimeoutError } from "../core/job/reasons.ts";
export { type Adaptive, type AdaptiveOptions, adaptive } from "../core/stats/adaptive-limit.ts";
export type { CallCounts } from "./call-stats.ts";
export type { CallDefinition, Calls, CallsOptions, DefinedCall, WithinOptions } from "./calls.ts";
export { deadlineFetch } from "./deadline-fetch.ts";
export type { StreamOptions } from "./limited-stream.ts";
export {
  expressDeadline,
  fastifyDeadline,
  honoDeadline,
  koaDeadline,
  type RouteOptions,
  type WithDeadline,
} from "./route-deadlines.ts";
export type { CallContext, CallEnd, CallFunction } from "./running-call.ts";
export type { StreamContext, StreamSource } from "./stream-source.ts";

/** Calls with defaults, a logger and counters of their own. */
export function createCalls(options: CallsOptions = {}): Calls {
  return new Calls(options);
}

/** The calls of a program that needs no settings. */
export const calls: Calls = new Calls();
export const { within, defineCall, limitStream } = calls;
