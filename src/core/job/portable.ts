import { refuse, refuseUnknownKeys } from "../errors.ts";
import { type Json, toJsonText } from "../schema.ts";
import { type DurationText, parseDuration, parseInstant } from "../time.ts";
import type { AnyDefinition, DefinitionOptions } from "./definition.ts";
import { ENQUEUE_KEYS, type EnqueueOptions } from "./envelope.ts";
import type { Rung } from "./job.ts";
import { parseRung, type RungOptions } from "./policy.ts";
import { parseUnique, portableUnique } from "./unique.ts";

/** What `defineJob` needs to make a definition again, without its schemas: they are code and cannot travel. */
export type PortableDefinition = DefinitionOptions<undefined, undefined>;

/** The options of an enqueue that can travel: all but the caller's transaction. */
export type PortableOptions = Omit<EnqueueOptions, "tx">;

/** A definition as JSON, for an enqueue on behalf of a process that has no store. */
export function portableDefinition({
  type,
  queue,
  priority,
  unique,
  rung,
}: AnyDefinition): PortableDefinition {
  return { type, queue, priority, ...(unique && { unique: portableUnique(unique) }), ...rungOptions(rung) };
}

/** The options of an enqueue as JSON; instants and durations of every kind become texts that mean the same. */
export function portableOptions(options: EnqueueOptions = {}): PortableOptions {
  refuseUnknownKeys(options, "options", ENQUEUE_KEYS);
  const { id, queue, priority, detach, delay, at, expiresAt, meta, unique, tx } = options;
  if (tx !== undefined)
    throw refuse("invalid_option", "options.tx", "a transaction", "it cannot leave its process");
  return {
    ...(id !== undefined && { id }),
    ...(queue !== undefined && { queue }),
    ...(priority !== undefined && { priority }),
    ...(detach !== undefined && { detach }),
    ...(delay !== undefined && { delay: inText(parseDuration(delay, "options.delay", { zero: true })) }),
    ...(at !== undefined && { at: new Date(parseInstant(at, "options.at")).toISOString() }),
    ...(expiresAt !== undefined && {
      expiresAt: new Date(parseInstant(expiresAt, "options.expiresAt")).toISOString(),
    }),
    ...(meta !== undefined && {
      meta: JSON.parse(toJsonText(meta, "options.meta")) as { [key: string]: Json },
    }),
    ...(unique !== undefined && {
      unique: unique === false ? false : portableUnique(parseUnique(unique, "options.unique")),
    }),
    ...rungOptions(parseRung(options, "options")),
  };
}

/** A rung as a user would have written it. */
function rungOptions({ timeouts, retry, retention }: Rung): RungOptions {
  return {
    ...(timeouts && { timeouts: inTexts(timeouts, (name) => (name === "grace" ? "unbounded" : "none")) }),
    ...(retry && { retry }),
    ...(retention && { retention: inTexts(retention, () => "none") }),
  } as RungOptions;
}

function inTexts(limits: object, never: (name: string) => string): object {
  return Object.fromEntries(
    Object.entries(limits).map(([name, value]) => [
      name,
      value === null ? never(name) : typeof value === "number" ? inText(value) : value,
    ]),
  );
}

function inText(milliseconds: number): DurationText {
  return `${milliseconds}ms`;
}
