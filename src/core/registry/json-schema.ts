import { refuse } from "../errors.ts";
import { type Json, toJsonText } from "../schema.ts";
import { patternWeight } from "./pattern-weight.ts";

/** A JSON Schema (2020-12) of the arguments of a job, within the limits of the registry. */
export type JsonSchema = boolean | { readonly [keyword: string]: Json };

export const SCHEMA_LIMITS = {
  /** Characters of the whole schema. */
  text: 65_536,
  /** Levels of nesting, references followed. */
  depth: 30,
  /** Schemas within the schema, each counted as often as it is referred to. */
  parts: 2_000,
  patterns: 200,
  patternLength: 500,
  /** What a pattern, and all patterns together, weigh: see `patternWeight`. */
  patternWeight: 2_000,
  patternWeights: 10_000,
  /** Comparing n items with each other takes n² steps. */
  uniqueItems: 1_000,
} as const;

/** Keywords whose value is a schema, a list of schemas, or schemas by name. */
export const ONE_SCHEMA: ReadonlySet<string> = new Set(
  [
    "additionalProperties",
    "propertyNames",
    "unevaluatedProperties",
    "items",
    "unevaluatedItems",
    "contains",
  ].concat(["not", "if", "then", "else", "contentSchema"]),
);
export const MANY_SCHEMAS: ReadonlySet<string> = new Set(["allOf", "anyOf", "oneOf", "prefixItems"]);
export const NAMED_SCHEMAS: ReadonlySet<string> = new Set([
  "properties",
  "patternProperties",
  "dependentSchemas",
  "$defs",
  "definitions",
]);
/** References that need an address, or a scope that is known only while a value is checked. */
const REFUSED = new Set([
  "$id",
  "$anchor",
  "$dynamicRef",
  "$dynamicAnchor",
  "$recursiveRef",
  "$recursiveAnchor",
  "$vocabulary",
]);
const DRAFT = "https://json-schema.org/draft/2020-12/schema";

/**
 * Refuses a schema that could cost too much to compile or to check: its size, its depth, references to elsewhere, and
 * references in a circle are bounded. The list form of `items` of older drafts becomes `prefixItems`.
 */
export function checkJsonSchema(said: unknown, field = "schema"): JsonSchema {
  if (typeof said !== "object" || said === null || Array.isArray(said))
    throw refuse("invalid_schema", field, said, "write a JSON Schema: an object");
  const text = toJsonText(said, field, SCHEMA_LIMITS.text);
  const schema = modern(JSON.parse(text) as JsonSchema, 0, field) as { readonly [keyword: string]: Json };
  const draft = schema.$schema;
  if (
    draft !== undefined &&
    !String(draft).startsWith(DRAFT) &&
    !/^https?:\/\/json-schema.org\/draft-0[67]/.test(String(draft))
  )
    throw refuse("invalid_schema", `${field}.$schema`, draft, `use "${DRAFT}", or leave it out`);
  new Walk(schema, field).part(schema, field, [], 0);
  return schema;
}

/** What older drafts wrote as a list of `items`, in the words of 2020-12. */
function modern(schema: Json, depth: number, field: string): Json {
  if (depth > 4 * SCHEMA_LIMITS.depth)
    throw refuse("invalid_schema", field, `${depth} levels`, `nest at most ${SCHEMA_LIMITS.depth}`);
  if (Array.isArray(schema)) return schema.map((each) => modern(each, depth + 1, field));
  if (typeof schema !== "object" || schema === null) return schema;
  const { items, additionalItems, ...rest } = schema as { readonly [keyword: string]: Json };
  const inner = Object.entries(rest).map(([name, value]) => {
    // Values, not schemas: they stay as they are.
    const isValue = name === "const" || name === "enum" || name === "default" || name === "examples";
    return [name, isValue ? value : modern(value, depth + 1, field)] as const;
  });
  const made: Record<string, Json> = Object.fromEntries(inner);
  if (Array.isArray(items)) {
    // An empty list says nothing.
    if (items.length > 0) made.prefixItems = items.map((each) => modern(each, depth + 1, field));
    if (additionalItems !== undefined) made.items = modern(additionalItems, depth + 1, field);
  } else if (items !== undefined) made.items = modern(items, depth + 1, field);
  return made;
}

class Walk {
  readonly #root: JsonSchema;
  readonly #field: string;
  #parts = 0;
  #patterns = 0;
  #weights = 0;

  constructor(root: JsonSchema, field: string) {
    this.#root = root;
    this.#field = field;
  }

  part(schema: Json | undefined, path: string, refs: readonly string[], depth: number): void {
    this.#parts += 1;
    if (this.#parts > SCHEMA_LIMITS.parts)
      this.#refuse(
        this.#field,
        `more than ${SCHEMA_LIMITS.parts} parts`,
        "make it smaller: references count each time",
      );
    if (depth > SCHEMA_LIMITS.depth)
      this.#refuse(path, `${depth} levels`, `nest at most ${SCHEMA_LIMITS.depth}`);
    if (typeof schema === "boolean") return;
    if (typeof schema !== "object" || schema === null || Array.isArray(schema))
      this.#refuse(path, schema, "write a schema: an object, true or false");
    for (const [name, value] of Object.entries(schema as object))
      this.#keyword(name, value as Json, schema as object, path, refs, depth);
  }

  #keyword(
    name: string,
    value: Json,
    schema: object,
    path: string,
    refs: readonly string[],
    depth: number,
  ): void {
    const at = `${path}.${name}`;
    if (REFUSED.has(name))
      this.#refuse(at, value, "leave it out: refer to parts by their place, such as #/$defs/address");
    if (name === "$ref") {
      this.#reference(value, at, refs, depth);
      return;
    }
    if (name === "pattern") this.#pattern(value, at);
    if (name === "uniqueItems" && value === true)
      this.#unique((schema as { maxItems?: unknown }).maxItems, at);
    // Definitions count where they are referred to.
    if (name === "$defs" || name === "definitions") return;
    if (name === "patternProperties" && typeof value === "object" && value !== null)
      for (const pattern of Object.keys(value)) this.#pattern(pattern, at);
    if (ONE_SCHEMA.has(name)) this.part(value, at, refs, depth + 1);
    else if (MANY_SCHEMAS.has(name) && Array.isArray(value))
      for (const [index, each] of value.entries()) this.part(each, `${at}[${index}]`, refs, depth + 1);
    else if (NAMED_SCHEMAS.has(name) && typeof value === "object" && value !== null)
      for (const [key, each] of Object.entries(value))
        this.part(each as Json, `${at}.${key}`, refs, depth + 1);
  }

  #reference(value: Json, at: string, refs: readonly string[], depth: number): void {
    if (typeof value !== "string" || !(value === "#" || value.startsWith("#/")))
      this.#refuse(
        at,
        value,
        "refer to a part of the same schema, such as #/$defs/address: nothing is loaded from elsewhere",
      );
    const ref = value as string;
    if (refs.includes(ref) || ref === "#")
      this.#refuse(
        at,
        value,
        "a schema that refers to itself could take endless time: describe the levels that you need, and use true below",
      );
    const target = resolvePart(this.#root, ref);
    if (target === undefined) this.#refuse(at, value, "there is no such part in this schema");
    this.part(target, at, [...refs, ref], depth + 1);
  }

  #pattern(value: Json, at: string): void {
    this.#patterns += 1;
    if (this.#patterns > SCHEMA_LIMITS.patterns)
      this.#refuse(at, value, `use at most ${SCHEMA_LIMITS.patterns} patterns`);
    if (typeof value !== "string" || value.length > SCHEMA_LIMITS.patternLength)
      this.#refuse(
        at,
        value,
        `write a regular expression of at most ${SCHEMA_LIMITS.patternLength} characters`,
      );
    const weight = patternWeight(value as string);
    this.#weights += weight;
    if (weight > SCHEMA_LIMITS.patternWeight || this.#weights > SCHEMA_LIMITS.patternWeights)
      this.#refuse(at, value, "use maxLength instead of large repetitions: the patterns are too large");
  }

  #unique(maxItems: unknown, at: string): void {
    if (typeof maxItems === "number" && maxItems <= SCHEMA_LIMITS.uniqueItems) return;
    this.#refuse(at, true, `say maxItems of at most ${SCHEMA_LIMITS.uniqueItems} beside it, or leave it out`);
  }

  #refuse(field: string, value: unknown, fix: string): never {
    throw refuse("invalid_schema", field, value, fix);
  }
}

/** The part of a schema that `#/a/b` names. */
export function resolvePart(root: JsonSchema, ref: string): Json | undefined {
  let part: Json | undefined = root as Json;
  for (const step of ref.split("/").slice(1)) {
    const key = decodeURIComponentOr(step).replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof part !== "object" || part === null || !Object.hasOwn(part, key)) return undefined;
    part = (part as { readonly [key: string]: Json })[key];
  }
  return part;
}

function decodeURIComponentOr(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
