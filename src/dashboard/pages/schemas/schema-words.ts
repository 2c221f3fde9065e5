import type { JobSchema, SchemaSummary } from "../../../ojs/replies/settings-replies.ts";

type Rules = Pick<SchemaSummary, "validation" | "compatibility">;

export const VALIDATIONS = {
  always: "all jobs of the type",
  named: "only jobs that name a version",
} as const;

export const COMPATIBILITIES = {
  backward: "what fitted before must still fit",
  forward: "nothing fits that did not fit before",
  full: "exactly the same must fit",
  none: "anything goes",
} as const;

export const checkedWords = ({ validation }: Rules) => VALIDATIONS[validation];
export const compatibleWords = ({ compatibility }: Rules) => COMPATIBILITIES[compatibility];

/** A field that jobs of the type have: its path in `args`, what it is, whether it must be there. */
export interface SchemaField {
  readonly path: string;
  readonly is: string;
  readonly isRequired: boolean;
  readonly about: string;
}

type Part = Readonly<Record<string, unknown>>;
const MOST = 200;
const DEEPEST = 6;

/** The fields that a schema describes, from the outside in. What it cannot say in a line stays in the schema itself. */
export function fieldsOf(schema: JobSchema["schema"]): SchemaField[] {
  const fields: SchemaField[] = [];
  walk(schema, "args", true, 0, fields);
  return fields.slice(0, MOST);
}

function walk(value: unknown, path: string, isRequired: boolean, depth: number, fields: SchemaField[]): void {
  if (typeof value !== "object" || value === null || depth > DEEPEST || fields.length >= MOST) return;
  const part = value as Part;
  if (depth > 0)
    fields.push({ path, is: kindOf(part), isRequired, about: String(part.description ?? part.title ?? "") });
  const required = new Set(Array.isArray(part.required) ? part.required : []);
  for (const [name, inner] of Object.entries((part.properties as Part | undefined) ?? {}))
    walk(inner, `${path}.${name}`, required.has(name), depth + 1, fields);
  const entries = Array.isArray(part.prefixItems) ? part.prefixItems : [];
  const least = typeof part.minItems === "number" ? part.minItems : 0;
  for (const [index, inner] of entries.entries())
    walk(inner, `${path}[${index}]`, index < least, depth + 1, fields);
  if (typeof part.items === "object") walk(part.items, `${path}[]`, false, depth + 1, fields);
}

const BOUNDS = [
  ["minimum", "at least"],
  ["exclusiveMinimum", "more than"],
  ["maximum", "at most"],
  ["exclusiveMaximum", "less than"],
  ["minLength", "at least this many characters:"],
  ["maxLength", "at most this many characters:"],
  ["minItems", "at least this many entries:"],
  ["maxItems", "at most this many entries:"],
  ["pattern", "like"],
  ["format", "in the format"],
] as const;

/** Integers of a schema are bounded by what a number can hold; that is not worth a word. */
const isWorthSaying = (value: unknown) => Math.abs(Number(value)) !== Number.MAX_SAFE_INTEGER;

function kindOf(part: Part): string {
  if (Array.isArray(part.enum)) return `one of ${part.enum.map((one) => JSON.stringify(one)).join(", ")}`;
  if ("const" in part) return `always ${JSON.stringify(part.const)}`;
  const options = part.oneOf ?? part.anyOf;
  const type = Array.isArray(part.type) ? part.type.join(" or ") : part.type;
  const kind =
    typeof type === "string" ? type : Array.isArray(options) ? `one of ${options.length} shapes` : "anything";
  const bounds = BOUNDS.flatMap(([name, words]) =>
    part[name] === undefined || !isWorthSaying(part[name]) ? [] : [`${words} ${String(part[name])}`],
  );
  return [kind, ...bounds].join(", ");
}
