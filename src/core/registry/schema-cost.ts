import type { Json } from "../schema.ts";
import { type JsonSchema, resolvePart } from "./json-schema.ts";

/** What one check of a job may cost, so that no job and no schema holds up a process. */
export const CHECK_LIMITS = {
  /** Parts of the schema that are compared with values, and values of enums. A million take about 0.1 s. */
  steps: 5_000_000,
  /** Characters that are matched, times the weight of the pattern. */
  matching: 50_000_000,
} as const;

/** Up to this many steps the worst case is allowed without a closer look. */
const CHEAP = 500_000;

type Part = { readonly [keyword: string]: Json };

const IN_PLACE = ["not", "if", "then", "else"] as const;
const LISTS = ["allOf", "anyOf", "oneOf"] as const;

function isObject(value: Json | undefined): value is Part {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** How many steps a schema takes for one value at most, references followed. */
function widthOf(schema: Json | undefined, root: JsonSchema): number {
  if (!isObject(schema)) return Array.isArray(schema) ? sum(schema, (each) => widthOf(each, root)) : 1;
  return Object.entries(schema).reduce((width, [name, value]) => {
    if (name === "enum") return width + (Array.isArray(value) ? value.length : 1);
    if (name === "$ref") return width + widthOf(resolvePart(root, String(value)), root);
    if (name === "$defs" || name === "definitions" || name === "const") return width;
    return width + (typeof value === "object" && value !== null ? widthOf(value, root) : 1);
  }, 1);
}

function sum<Item>(items: readonly Item[], of: (item: Item) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}

/** Says whether a check of values against this schema stays within `CHECK_LIMITS.steps`. */
export class SchemaCost {
  readonly #root: JsonSchema;
  readonly #width: number;

  constructor(schema: JsonSchema) {
    this.#root = schema;
    this.#width = widthOf(schema as Json, schema);
  }

  allows(args: readonly Json[]): boolean {
    const most = CHEAP / this.#width;
    if (!hasMoreValues(args, most)) return true;
    return new Count(this.#root).of(this.#root as Json, args as Json) <= CHECK_LIMITS.steps;
  }
}

function hasMoreValues(value: Json, most: number): boolean {
  let count = 0;
  const left: Json[] = [value];
  for (let one = left.pop(); one !== undefined; one = left.pop()) {
    count += 1;
    if (count > most) return true;
    if (typeof one === "object" && one !== null) for (const inner of Object.values(one)) left.push(inner);
  }
  return false;
}

/** Walks a schema beside a value, as a check does that finds no misfit. It stops at the limit. */
class Count {
  readonly #root: JsonSchema;
  #steps = 0;

  constructor(root: JsonSchema) {
    this.#root = root;
  }

  of(schema: Json | undefined, value: Json): number {
    this.#steps += 1;
    if (!isObject(schema) || this.#isOver) return this.#steps;
    if (Array.isArray(schema.enum)) this.#steps += schema.enum.length;
    if (schema.$ref !== undefined) this.of(resolvePart(this.#root, String(schema.$ref)), value);
    for (const name of IN_PLACE) if (schema[name] !== undefined) this.of(schema[name], value);
    for (const name of LISTS) for (const each of (schema[name] ?? []) as Json[]) this.of(each, value);
    if (Array.isArray(value)) this.#items(schema, value);
    else if (isObject(value)) this.#properties(schema, value);
    return this.#steps;
  }

  get #isOver(): boolean {
    return this.#steps > CHECK_LIMITS.steps;
  }

  #items(schema: Part, values: readonly Json[]): void {
    const { prefixItems = [], items, contains, unevaluatedItems } = schema;
    for (const [index, value] of values.entries()) {
      if (this.#isOver) return;
      const own = (prefixItems as Json[])[index] ?? items;
      for (const each of [own, contains, unevaluatedItems]) if (each !== undefined) this.of(each, value);
    }
  }

  #properties(schema: Part, value: Part): void {
    const { properties = {}, patternProperties = {}, dependentSchemas = {} } = schema;
    const { additionalProperties, propertyNames, unevaluatedProperties } = schema;
    const patterned = Object.values(patternProperties as Part);
    for (const each of Object.values(dependentSchemas as Part)) this.of(each, value);
    for (const [key, inner] of Object.entries(value)) {
      if (this.#isOver) return;
      if (propertyNames !== undefined) this.of(propertyNames, key);
      const own = Object.hasOwn(properties as Part, key) ? (properties as Part)[key] : additionalProperties;
      for (const each of [own, unevaluatedProperties, ...patterned])
        if (each !== undefined) this.of(each, inner);
    }
  }
}
