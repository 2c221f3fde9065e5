import { nearestName } from "../nearest-name.ts";
import type { Json } from "../schema.ts";
import { type JsonSchema, MANY_SCHEMAS, NAMED_SCHEMAS, ONE_SCHEMA } from "./json-schema.ts";

/** A keyword that no validator knows, and the one that was probably meant. */
export interface MistypedKeyword {
  readonly field: string;
  readonly meant: string;
}

const KEYWORDS: ReadonlySet<string> = new Set([
  ...ONE_SCHEMA,
  ...MANY_SCHEMAS,
  ...NAMED_SCHEMAS,
  ...["$schema", "$ref", "$comment", "type", "enum", "const", "title", "description", "default", "examples"],
  ...["multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "format", "pattern"],
  ...["maxLength", "minLength", "maxItems", "minItems", "uniqueItems", "maxContains", "minContains"],
  ...["maxProperties", "minProperties", "required", "dependentRequired", "dependencies"],
  ...["deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType"],
]);
const MOST_FOUND = 10;
/** Unknown names of one schema that are compared: a comparison costs more than a lookup. */
const MOST_COMPARED = 100;

/**
 * Keywords with a typo. JSON Schema takes an unknown keyword for a note, so `requird` would check nothing, and nobody
 * would notice.
 */
export function mistypedKeywords(schema: JsonSchema, field = "schema"): readonly MistypedKeyword[] {
  const found: MistypedKeyword[] = [];
  let compared = 0;
  const look = (part: Json | undefined, at: string): void => {
    if (typeof part !== "object" || part === null || Array.isArray(part)) return;
    for (const [name, value] of Object.entries(part)) {
      const place = `${at}.${name}`;
      if (ONE_SCHEMA.has(name)) look(value, place);
      else if (MANY_SCHEMAS.has(name) && Array.isArray(value))
        for (const [index, each] of value.entries()) look(each, `${place}[${index}]`);
      else if (NAMED_SCHEMAS.has(name) && typeof value === "object" && value !== null)
        for (const [key, each] of Object.entries(value)) look(each as Json, `${place}.${key}`);
      else if (!KEYWORDS.has(name) && !/^x-/i.test(name) && compared++ < MOST_COMPARED) {
        const meant = nearestName(name, KEYWORDS);
        if (meant !== undefined && found.length < MOST_FOUND) found.push({ field: place, meant });
      }
    }
  };
  look(schema as Json, field);
  return found;
}
