import { refuse } from "../errors.ts";
import type { AnyDefinition } from "../job/job-definition.ts";

/** Standard JSON Schema (standardschema.dev/json-schema): zod from 4.2 on, and others, have it. */
interface WithJsonSchema {
  readonly jsonSchema?: {
    readonly input?: (options: { readonly target: string }) => Record<string, unknown>;
  };
}

/** The schema of the arguments of a definition's jobs: a list with the payload. */
export function argsSchemaOf({ type, payload }: AnyDefinition): object {
  const write = (payload?.["~standard"] as WithJsonSchema | undefined)?.jsonSchema?.input;
  if (typeof write !== "function") {
    const fix = `its payload must be a schema that can be written as JSON Schema, such as one made with zod 4.2 or newer`;
    throw refuse("invalid_definition", `${type}.payload`, payload?.["~standard"].vendor, fix);
  }
  const { $schema: _draft, ...schema } = write({ target: "draft-2020-12" });
  const { $defs, ...rest } = schema;
  return {
    type: "array",
    prefixItems: [rest],
    items: false,
    minItems: 1,
    ...($defs !== undefined && { $defs }),
  };
}
