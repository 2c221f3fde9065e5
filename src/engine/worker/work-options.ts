import { CurfewError, refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { checkQueue } from "../../core/job/job-definition.ts";
import { keysOf } from "../../core/option-keys.ts";
import { type Duration, parseDuration } from "../../core/time.ts";
import type { Middleware, Processor } from "../attempt/processor.ts";

export interface WorkOptions {
  /** What its id begins with, for people: 1 to 32 of A-Z a-z 0-9 . _ -. Default: the id is a UUID. */
  readonly name?: string;
  /** What runs the jobs: at least one `processor()` or `sandboxed()`, and one per type. */
  readonly processors: readonly Processor[];
  /** Which queues, and how many attempts of each run at once. Left out: the queues of the processors' definitions, 10 each, or two batches. */
  readonly queues?: { readonly [queue: string]: { readonly concurrency: number } };
  /** Wraps every attempt, outer to inner. Default: none. */
  readonly middleware?: readonly Middleware[];
  /** With this many handlers running past their verdict, the worker stops claiming. Default: its concurrency. */
  readonly maxStuck?: number;
  /** How long `close()` lets running attempts finish before it aborts them. Default 25 s. */
  readonly drain?: Duration;
}

export const WORK_KEYS = keysOf<WorkOptions>({
  name: true,
  processors: true,
  queues: true,
  middleware: true,
  maxStuck: true,
  drain: true,
});
const MOST_CONCURRENCY = 10_000;

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/;
/** The random digits of a UUID. They keep the ids of workers with one name apart. */
const RANDOM_DIGITS = 12;

/** The id of a worker: its name and the random part of a UUID, or the whole UUID. */
export function workerId(name: string | undefined, uuid: string): string {
  if (name === undefined) return uuid;
  if (typeof name !== "string" || !NAME.test(name))
    throw refuse("invalid_name", "work.name", name, "use 1 to 32 of A-Z a-z 0-9 . _ -, or leave it out");
  return `${name}-${uuid.slice(-RANDOM_DIGITS)}`;
}

export function checkProcessors(processors: readonly Processor[]): readonly Processor[] {
  if (!Array.isArray(processors) || processors.length === 0) {
    throw refuse("invalid_option", "work.processors", processors, "list at least one processor()");
  }
  const seen = new Set<string>();
  for (const [index, processor] of processors.entries()) {
    const type = processor?.definition?.type;
    if (typeof type !== "string")
      throw refuse(
        "invalid_option",
        `work.processors[${index}]`,
        processor,
        "pass what processor() returned",
      );
    if (seen.has(type))
      throw new CurfewError(
        "invalid_option",
        `work.processors[${index}]: "${type}" has a processor already; give each type one`,
        { field: `work.processors[${index}]` },
      );
    seen.add(type);
  }
  return processors;
}

/** Attempts of a queue that run at once, unless `work.queues` says otherwise. */
const CONCURRENCY = 10;
/** One batch runs while the next one is gathered. */
const BATCHES = 2;

export function checkQueues(
  queues: WorkOptions["queues"],
  processors: readonly Processor[],
): [string, number][] {
  if (queues === undefined) {
    const slots = new Map<string, number>();
    for (const { definition, batch } of processors) {
      const needed = Math.max(CONCURRENCY, BATCHES * (batch?.size ?? 0));
      slots.set(definition.queue, Math.max(needed, slots.get(definition.queue) ?? 0));
    }
    return [...slots];
  }
  const entries = Object.entries(queues);
  if (entries.length === 0)
    throw refuse(
      "invalid_option",
      "work.queues",
      queues,
      "name at least one queue, such as { default: { concurrency: 10 } }",
    );
  return entries.map(([queue, options]) => {
    const field = `work.queues.${queue}`;
    refuseUnknownKeys(options, field, ["concurrency"]);
    const { concurrency } = options;
    if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > MOST_CONCURRENCY) {
      throw refuse(
        "invalid_limit",
        `${field}.concurrency`,
        concurrency,
        `use a whole number from 1 to ${MOST_CONCURRENCY}`,
      );
    }
    return [checkQueue(queue, field), concurrency];
  });
}

export function checkMiddleware(middleware: readonly Middleware[]): readonly Middleware[] {
  if (!Array.isArray(middleware))
    throw refuse("invalid_option", "work.middleware", middleware, "pass a list of functions");
  for (const [index, layer] of middleware.entries()) {
    if (typeof layer !== "function")
      throw refuse("invalid_option", `work.middleware[${index}]`, layer, "pass a function");
  }
  return middleware;
}

export function checkMaxStuck(maxStuck: number): number {
  if (!Number.isInteger(maxStuck) || maxStuck < 1)
    throw refuse("invalid_limit", "work.maxStuck", maxStuck, "use a whole number from 1");
  return maxStuck;
}

/** How many milliseconds `close()` waits for running handlers; undefined if its options do not say. */
export function parseDrain(options: { readonly drain?: Duration }): number | undefined {
  refuseUnknownKeys(options, "close", ["drain"]);
  const { drain } = options;
  return drain === undefined ? undefined : parseDuration(drain, "close.drain", { zero: true });
}

export interface WorkerStatus {
  readonly ready: boolean;
  /** Why it is not ready. */
  readonly reason: string | null;
  readonly running: number;
  readonly held: number;
  readonly stuck: number;
}
