import type { SchemaIndex, StoredSchema } from "../../core/registry/registered-schema.ts";
import { recordKind } from "../commit/record-kind.ts";

/** Named by type and version: `card.charge@2`. */
export const SCHEMAS = recordKind<StoredSchema>("schema");
export const SCHEMA_INDEX = recordKind<SchemaIndex>("schema.index");
/** The one record of `SCHEMA_INDEX`. */
export const ALL_TYPES = "all";

export function schemaName(type: string, version: string): string {
  return `${type}@${version}`;
}
