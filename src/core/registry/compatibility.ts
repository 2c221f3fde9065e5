import { canonicalJson } from "../canonical-json.ts";
import { refuse } from "../errors.ts";
import type { Json } from "../schema.ts";
import { type JsonSchema, resolvePart } from "./json-schema.ts";

/**
 * `backward`: what fitted the older schema fits the newer one, so workers that know the newer one can run older jobs.
 * `forward`: what fits the newer schema fitted the older one, so older workers can run newer jobs. `full`: both.
 */
export const COMPATIBILITIES = ["none", "backward", "forward", "full"] as const;
export type Compatibility = (typeof COMPATIBILITIES)[number];

export function checkCompatibility(value: unknown, field: string): Compatibility {
  const found = COMPATIBILITIES.find((each) => each === value);
  if (found) return found;
  throw refuse("invalid_option", field, value, `use one of ${COMPATIBILITIES.join(", ")}`);
}

const MOST_REASONS = 20;

/** Why the newer schema is not compatible; empty if it is. */
export function incompatibilities(older: JsonSchema, newer: JsonSchema, mode: Compatibility): string[] {
  const reasons: string[] = [];
  if (mode === "backward" || mode === "full")
    reasons.push(...narrowings(older, newer).map((reason) => `backward: ${reason}`));
  if (mode === "forward" || mode === "full")
    reasons.push(...narrowings(newer, older).map((reason) => `forward: ${reason}`));
  return reasons.slice(0, MOST_REASONS);
}

/** Where `to` may refuse a value that `from` takes. What cannot be compared counts as a reason. */
function narrowings(from: JsonSchema, to: JsonSchema): string[] {
  return new Comparison(from, to).reasons();
}

type Part = { readonly [keyword: string]: Json };

/** Bounds of numbers and sizes, and which way of moving them takes fewer values. */
const LOWER = ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"];
const UPPER = ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"];
/** Compared one by one below, or without a say in what fits. */
const COMPARED = new Set([
  ...[
    "type",
    "enum",
    "const",
    "required",
    "properties",
    "additionalProperties",
    "items",
    "prefixItems",
    "$ref",
  ],
  ...LOWER,
  ...UPPER,
  ...[
    "$schema",
    "$defs",
    "definitions",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
  ],
  ...["readOnly", "writeOnly", "format", "contentEncoding", "contentMediaType", "contentSchema"],
]);

class Comparison {
  readonly #from: JsonSchema;
  readonly #to: JsonSchema;
  readonly #reasons: string[] = [];

  constructor(from: JsonSchema, to: JsonSchema) {
    this.#from = from;
    this.#to = to;
  }

  reasons(): string[] {
    this.#compare(this.#from as Json, this.#to as Json, "args");
    return this.#reasons;
  }

  #says(at: string, reason: string): void {
    if (this.#reasons.length < MOST_REASONS) this.#reasons.push(`${at}: ${reason}`);
  }

  #compare(from: Json, to: Json, at: string): void {
    const [a, b] = [resolved(from, this.#from), resolved(to, this.#to)];
    if (b === true || (b !== false && Object.keys(b).length === 0) || a === false) return;
    if (b === false) {
      this.#says(at, "nothing is allowed here any more");
      return;
    }
    const part = a === true ? {} : a;
    this.#types(part, b, at);
    this.#values(part, b, at);
    this.#bounds(part, b, at);
    this.#objects(part, b, at);
    this.#lists(part, b, at);
    this.#others(part, b, at);
  }

  #types(a: Part, b: Part, at: string): void {
    const allowed = typesOf(b);
    if (allowed === null) return;
    const taken = typesOf(a) ?? valuesOf(a)?.map(typeOfValue) ?? null;
    if (taken === null) {
      this.#says(at, `only ${[...allowed].join(" or ")} is allowed now`);
      return;
    }
    const lost = taken.filter(
      (type) => !allowed.includes(type) && !(type === "integer" && allowed.includes("number")),
    );
    if (lost.length > 0) this.#says(at, `${[...new Set(lost)].join(" and ")} is not allowed any more`);
  }

  #values(a: Part, b: Part, at: string): void {
    const allowed = valuesOf(b)?.map((value) => canonicalJson(value));
    if (!allowed) return;
    const taken = valuesOf(a)?.map((value) => canonicalJson(value));
    if (!taken) {
      this.#says(at, `only ${allowed.length} values are allowed now`);
      return;
    }
    const lost = taken.filter((value) => !allowed.includes(value));
    if (lost.length > 0) this.#says(at, `the value ${lost[0]} is not allowed any more`);
  }

  #bounds(a: Part, b: Part, at: string): void {
    for (const name of LOWER) this.#bound(name, a[name], b[name], at, (was, is) => is > was);
    for (const name of UPPER) this.#bound(name, a[name], b[name], at, (was, is) => is < was);
  }

  #bound(
    name: string,
    was: Json | undefined,
    is: Json | undefined,
    at: string,
    isNarrower: (was: number, is: number) => boolean,
  ): void {
    if (typeof is !== "number" || (name.startsWith("min") && is === 0)) return;
    if (typeof was !== "number") this.#says(at, `${name} ${is} is new`);
    else if (isNarrower(was, is)) this.#says(at, `${name} changed from ${was} to ${is}`);
  }

  #objects(a: Part, b: Part, at: string): void {
    const wasRequired = new Set((a.required as readonly string[] | undefined) ?? []);
    for (const name of (b.required as readonly string[] | undefined) ?? [])
      if (!wasRequired.has(name)) this.#says(`${at}.${name}`, "it is required now");
    const [old, now] = [partsOf(a.properties), partsOf(b.properties)];
    for (const [name, part] of now) {
      const before = old.get(name) ?? a.additionalProperties ?? true;
      if (old.has(name) || before !== false) this.#compare(before, part, `${at}.${name}`);
    }
    const rest = b.additionalProperties ?? true;
    for (const [name, part] of old) if (!now.has(name)) this.#compare(part, rest, `${at}.${name}`);
    if (rest !== true) this.#compare(a.additionalProperties ?? true, rest, `${at}.*`);
  }

  #lists(a: Part, b: Part, at: string): void {
    const [old, now] = [listOf(a.prefixItems), listOf(b.prefixItems)];
    const [oldRest, rest] = [a.items ?? true, b.items ?? true];
    for (let index = 0; index < Math.max(old.length, now.length); index++)
      this.#compare(old[index] ?? oldRest, now[index] ?? rest, `${at}[${index}]`);
    // Fewer items than the rest begins at: it never counts.
    const most = typeof a.maxItems === "number" ? a.maxItems : Number.POSITIVE_INFINITY;
    if (rest !== true && most > Math.max(old.length, now.length)) this.#compare(oldRest, rest, `${at}[]`);
  }

  /** Keywords that cannot be compared by their meaning must stay as they are, or go. */
  #others(a: Part, b: Part, at: string): void {
    for (const [name, value] of Object.entries(b)) {
      if (COMPARED.has(name)) continue;
      if (a[name] === undefined) this.#says(at, `${name} is new`);
      else if (canonicalJson(a[name]) !== canonicalJson(value))
        this.#says(at, `${name} changed, and such changes are not compared`);
    }
  }
}

/** Follows references. The registry takes no circles, so this ends. */
function resolved(part: Json, root: JsonSchema): Part | boolean {
  let now = part;
  while (typeof now === "object" && now !== null && typeof (now as Part).$ref === "string") {
    const { $ref, ...rest } = now as Part;
    const target = resolvePart(root, $ref as string) ?? true;
    now = typeof target === "boolean" ? target : { ...(target as Part), ...rest };
  }
  return typeof now === "boolean" ? now : ((now ?? {}) as Part);
}

function typesOf({ type }: Part): readonly string[] | null {
  return type === undefined ? null : ([type].flat() as string[]);
}

function valuesOf(part: Part): readonly Json[] | undefined {
  if (part.const !== undefined) return [part.const];
  return Array.isArray(part.enum) ? part.enum : undefined;
}

function typeOfValue(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}

function partsOf(properties: Json | undefined): ReadonlyMap<string, Json> {
  return new Map(Object.entries((properties ?? {}) as object));
}

function listOf(items: Json | undefined): readonly Json[] {
  return Array.isArray(items) ? items : [];
}
