import { show } from "../../core/errors.ts";
import type { Schemas } from "../../engine/schemas/schemas.ts";
import type { BodyWarning } from "../http/body-warnings.ts";

/** A job as it was read from the wire. */
interface Named {
  readonly definition: { readonly type: string };
  readonly wire?: { readonly [name: string]: unknown } | undefined;
}

/**
 * A warning if a job names a version or uri that its type, which has schemas, does not have. The job is stored: a version
 * also routes to workers, and a type that must have checked jobs says `always`, which refuses it.
 */
export function versionWarnings(schemas: Schemas, { definition, wire }: Named, place = ""): BodyWarning[] {
  const fields = wire?.fields as { readonly version?: unknown; readonly schema?: unknown } | undefined;
  const unknown = fields && schemas.unknownVersion(definition.type, fields);
  if (!unknown) return [];
  const { value, checked, versions } = unknown;
  const field = `${place}${unknown.field}`;
  const known = `registered for ${definition.type} are ${versions.slice(-10).join(", ")}`;
  const effect =
    checked === undefined ? "so its arguments were not checked" : `so version ${checked} checked it`;
  const fix =
    checked === undefined
      ? `name one of them, register it, or set validation "always" to refuse such jobs`
      : "name one of them, or leave it out";
  const message = `${field}: ${show(value)} is not registered, ${effect}; ${known}: ${fix}`;
  return [{ code: "unknown_version", field, message }];
}
