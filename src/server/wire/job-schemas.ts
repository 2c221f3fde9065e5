import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { show } from "../../core/errors.ts";
import { COMPATIBILITIES } from "../../core/registry/compatibility.ts";
import { mistypedKeywords } from "../../core/registry/mistyped-keywords.ts";
import { VALIDATIONS, versionField } from "../../core/registry/registered-schema.ts";
import type { SchemaSummary, SchemaView } from "../../engine/schemas/schemas.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import type { BodyWarning } from "../http/body-warnings.ts";
import { refusedField } from "../http/http-error.ts";
import { pagination } from "./admin-replies.ts";

const version = z
  .union([z.int().min(1), z.string().min(1).max(40)])
  .meta({ description: 'A whole number, or up to three as in "1.4.0".' });
const rules = {
  compatibility: z.enum(COMPATIBILITIES).nullish().meta({
    description: "How it must fit the version before it; without it, as its type says.",
  }),
  validation: z.enum(VALIDATIONS).nullish().meta({
    description: "Which jobs are checked: those that name a version or a uri, or all of the type.",
  }),
};
const schema = z.looseObject({}).meta({
  description: "A JSON Schema (2020-12) of `args`, of up to 65,536 characters, without remote references.",
});

/** The extensions have two names for each: schema-registry `schema` and `job_type`, job-versioning `args_schema` and `type`. */
const registered = {
  type: z.string().max(255).nullish(),
  job_type: z.string().max(255).nullish().meta({ description: "As type." }),
  version: version.nullish(),
  schema: schema.nullish(),
  args_schema: schema.nullish().meta({ description: "As schema." }),
  ...rules,
  uri: z.string().max(500).nullish(),
};

export const putSchemaBody = z
  .looseObject(registered)
  .meta({ id: "SchemaRequest", description: "A schema of the arguments of a job's type." });
export const registerSchemaBody = z
  .looseObject({ ...registered, version })
  .meta({ id: "SchemaRegistration" });
export const schemaRulesBody = z.looseObject(rules).meta({ id: "SchemaRules" });
export const checkSchemaBody = z
  .looseObject({
    schema: schema.nullish(),
    args: z.array(z.unknown()).nullish(),
    version: version.nullish(),
    ...rules,
  })
  .meta({
    id: "SchemaCheckRequest",
    description: "A schema to compare with the newest version, or args to check.",
  });

type RegisteredBody = z.output<typeof putSchemaBody>;

/** The schema, under either name. */
export function schemaIn(body: RegisteredBody) {
  return one("schema", [
    ["schema", body.schema],
    ["args_schema", body.args_schema],
  ]);
}

/** The type from the path, or else under either name. */
export function typeOf(body: RegisteredBody, path?: string): string {
  return one("type", [
    ["the path", path],
    ["type", body.type],
    ["job_type", body.job_type],
  ]);
}

export function versionIn(body: RegisteredBody, path?: string): string {
  return one("version", [
    ["the path", path],
    ["version", body.version == null ? undefined : String(body.version)],
  ]);
}

/** A value that may stand in several places; all that are there must be the same. */
function one<Value>(
  field: string,
  places: readonly (readonly [name: string, value: Value | null | undefined])[],
): Value {
  const said = places.flatMap(([name, value]) => (value == null ? [] : [{ name, value }]));
  const [first, ...rest] = said;
  if (!first)
    throw refusedField(field, `it is missing; send ${field === "schema" ? "an object" : `the ${field}`}`);
  const odd = rest.find(({ value }) => !isDeepStrictEqual(value, first.value));
  if (odd)
    throw refusedField(
      odd.name,
      `${show(odd.value)} contradicts ${first.name}: ${show(first.value)}; send one of them`,
    );
  return first.value;
}

const summary = z
  .looseObject({
    type: z.string(),
    version,
    versions: z.array(version),
    validation: z.enum(VALIDATIONS),
    compatibility: z.enum(COMPATIBILITIES),
  })
  .meta({ id: "SchemaSummary" });
export const schemaReply = z
  .looseObject({
    type: z.string(),
    version,
    uri: z.string(),
    schema: z.looseObject({}),
    validation: z.enum(VALIDATIONS),
    compatibility: z.enum(COMPATIBILITIES),
    created_at: z.string(),
  })
  .meta({ id: "JobSchema" });
export const schemasReply = z.looseObject({ schemas: z.array(summary), pagination }).meta({ id: "Schemas" });
export const schemaVersionsReply = z
  .looseObject({ type: z.string(), versions: z.array(version) })
  .meta({ id: "SchemaVersions" });
export const schemaCheckReply = z
  .looseObject({
    type: z.string(),
    compatible: z.boolean(),
    valid: z.boolean(),
    reasons: z.array(z.string()),
  })
  .meta({ id: "SchemaCheck" });

export function schemaFields({
  type,
  version: name,
  uri,
  at,
  schema,
  validation,
  compatibility,
}: SchemaView) {
  const created_at = instantText(at);
  const version = versionField(name);
  return {
    type,
    job_type: type,
    version,
    uri,
    schema,
    validation,
    compatibility,
    created_at,
    updated_at: created_at,
  };
}

/** What a schema says with a typo, which nothing checks. */
export function keywordWarnings(schema: SchemaView["schema"]): {
  readonly warnings?: readonly BodyWarning[];
} {
  const warnings = mistypedKeywords(schema).map(({ field, meant }) => ({
    code: "unknown_field" as const,
    field,
    message: `${field}: it is no keyword of JSON Schema and checks nothing; did you mean ${meant}?`,
  }));
  return warnings.length === 0 ? {} : { warnings };
}

export function summaryFields({ type, newest, versions, validation, compatibility }: SchemaSummary) {
  return {
    type,
    version: versionField(newest),
    versions: versions.map(versionField),
    validation,
    compatibility,
  };
}

export function rulesOf({ compatibility, validation }: z.output<typeof schemaRulesBody>) {
  return { ...(compatibility != null && { compatibility }), ...(validation != null && { validation }) };
}
