import { checkCount, refuse, refuseUnknownKeys } from "../errors.ts";
import { keysOf } from "../option-keys.ts";
import type { Json } from "../schema.ts";

/** Which share of a queue each fair key gets. A claim takes jobs from each key in turn. */
export interface FairOptions {
  /**
   * The key of jobs whose enqueue and definition name none: their `type`, or a field of their meta such as
   * `"meta.tenant_id"`. Jobs without a key share one turn.
   */
  readonly by?: string;
  /** `"round-robin"`: one job of each key in turn. `"weighted"` (the default): as many as the weight of the key. */
  readonly strategy?: "round-robin" | "weighted";
  /** How many jobs each key gives in its turn, for keys that differ from `defaultWeight`. */
  readonly weights?: Readonly<Record<string, number>>;
  /** The weight of all other keys. Default 1. */
  readonly defaultWeight?: number;
}

/** The stored form: a weight that is not named is 1. */
export interface QueueFairness {
  readonly by?: string;
  readonly strategy: "round-robin" | "weighted";
  readonly weights?: Readonly<Record<string, number>>;
  readonly defaultWeight?: number;
}

/** The key of jobs without a key in a fair queue: they share one turn. */
export const NO_FAIR_KEY = "";

const FAIR_KEYS = keysOf<FairOptions>({ by: true, strategy: true, weights: true, defaultWeight: true });
const KEY_LIMIT = 255;
const MOST_WEIGHT = 1_000;
const MOST_WEIGHTS = 1_000;
const BY = /^(type|meta\.[\w.:-]{1,128})$/;

export function parseFair(options: FairOptions, field: string): QueueFairness {
  refuseUnknownKeys(options, field, FAIR_KEYS);
  const { by, strategy = "weighted", weights, defaultWeight } = options;
  if (by !== undefined && (typeof by !== "string" || !BY.test(by)))
    throw refuse("invalid_option", `${field}.by`, by, 'write "type", or a field of meta: "meta.tenant_id"');
  if (strategy !== "round-robin" && strategy !== "weighted")
    throw refuse("invalid_option", `${field}.strategy`, strategy, 'write "round-robin" or "weighted"');
  if (strategy === "round-robin" && (weights !== undefined || defaultWeight !== undefined))
    throw refuse(
      "invalid_option",
      `${field}.strategy`,
      strategy,
      'it gives every key the same; for weights write "weighted"',
    );
  return {
    ...(by !== undefined && { by }),
    strategy,
    ...(weights !== undefined && { weights: parseWeights(weights, `${field}.weights`) }),
    ...(defaultWeight !== undefined && {
      defaultWeight: checkCount(defaultWeight, `${field}.defaultWeight`, MOST_WEIGHT),
    }),
  };
}

function parseWeights(weights: Readonly<Record<string, number>>, field: string): Record<string, number> {
  if (typeof weights !== "object" || weights === null || Array.isArray(weights))
    throw refuse("invalid_option", field, weights, 'write an object: { "customer-7": 5 }');
  const entries = Object.entries(weights);
  if (entries.length > MOST_WEIGHTS)
    throw refuse("invalid_option", field, `${entries.length} keys`, `name at most ${MOST_WEIGHTS} keys`);
  // No prototype: a key may be called "__proto__".
  const parsed: Record<string, number> = Object.create(null);
  for (const [key, weight] of entries) {
    if (key !== NO_FAIR_KEY) checkFairKey(key, `${field}: key`);
    parsed[key] = checkCount(weight, `${field}[${JSON.stringify(key)}]`, MOST_WEIGHT);
  }
  return parsed;
}

/** A fair key, or the function that computes it. */
export type FairKeySource = string | ((payload: never) => string);

export function parseFairKey(said: unknown, field: string): FairKeySource {
  return typeof said === "function" ? (said as FairKeySource) : checkFairKey(said, field);
}

export function fairKeyFrom(fair: FairKeySource, payload: unknown): string {
  return typeof fair === "string" ? fair : checkFairKey(fair(payload as never), "fair(payload)");
}

export function checkFairKey(key: unknown, field: string): string {
  if (typeof key !== "string" || key === "" || key.length > KEY_LIMIT)
    throw refuse("invalid_name", field, key, `use a text of 1 to ${KEY_LIMIT} characters`);
  // Databases cannot store them in a text.
  if (key.includes("\0") || !key.isWellFormed())
    throw refuse("invalid_name", field, key, "use a text without NUL and without halves of characters");
  return key;
}

/** The key that a fair queue gives a job whose enqueue and definition name none. A value that is no key counts as none. */
function keyByQueue(
  { by }: Pick<QueueFairness, "by">,
  { type, meta }: { readonly type: string; readonly meta: { readonly [key: string]: Json } | undefined },
): string {
  if (by === undefined) return NO_FAIR_KEY;
  const value = by === "type" ? type : metaValue(meta, by.slice("meta.".length));
  if (typeof value === "number") return String(value);
  if (typeof value !== "string") return NO_FAIR_KEY;
  return value.slice(0, KEY_LIMIT).toWellFormed().replaceAll("\0", "\ufffd");
}

/** The most specific source that names a key. A fair queue gives each job one. */
export function fairSource(
  said: { readonly fairKey?: string; readonly meta?: { readonly [key: string]: Json } },
  { type, fair }: { readonly type: string; readonly fair: FairKeySource | undefined },
  queue: QueueFairness | undefined,
): { readonly fair?: FairKeySource } {
  if (said.fairKey !== undefined) return { fair: checkFairKey(said.fairKey, "options.fairKey") };
  if (fair !== undefined) return { fair };
  return queue ? { fair: keyByQueue(queue, { type, meta: said.meta }) } : {};
}

function metaValue(meta: { readonly [key: string]: Json } | undefined, name: string): Json | undefined {
  return meta && Object.hasOwn(meta, name) ? meta[name] : undefined;
}

export function fairKeyOf({ fairKey }: { readonly fairKey: string | null }): string {
  return fairKey ?? NO_FAIR_KEY;
}

/** The weight of each key, as claims use it. */
export interface FairWeights {
  readonly weights: ReadonlyMap<string, number>;
  readonly defaultWeight: number;
  /** The smallest of them. Default 1. */
  readonly least?: number;
}

export function weightsOf({ strategy, weights: said, defaultWeight = 1 }: QueueFairness): FairWeights {
  if (strategy === "round-robin") return { weights: new Map(), defaultWeight: 1, least: 1 };
  const weights = new Map(Object.entries(said ?? {}));
  let least = defaultWeight;
  for (const weight of weights.values()) least = Math.min(least, weight);
  return { weights, defaultWeight, least };
}

/** How many jobs a key gives in one turn. */
export function weightOf({ weights, defaultWeight }: FairWeights, key: string): number {
  return weights.size === 0 ? defaultWeight : (weights.get(key) ?? defaultWeight);
}
