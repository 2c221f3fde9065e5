import { refuse } from "../errors.ts";
import type { Instant } from "../time.ts";
import type { Compatibility } from "./compatibility.ts";
import type { JsonSchema } from "./json-schema.ts";

/** `named`: jobs that name a registered version or its uri are checked. `always`: every job of the type is. */
export const VALIDATIONS = ["named", "always"] as const;
export type Validation = (typeof VALIDATIONS)[number];

/** The most versions of one type, and of all types together. */
export const MOST_VERSIONS = 100;
export const MOST_SCHEMAS = 2_000;
const URI_LIMIT = 500;

export interface VersionEntry {
  /** `"2"` or `"1.4.0"`. */
  readonly version: string;
  readonly uri: string;
  readonly at: Instant;
}

/** What is known of the schemas of a type, without the schemas. */
export interface TypeEntry {
  readonly validation: Validation;
  readonly compatibility: Compatibility;
  /** From the oldest to the newest. */
  readonly versions: readonly VersionEntry[];
}

/** One record for all types, so that every process sees with one read what changed. */
export interface SchemaIndex {
  readonly types: { readonly [type: string]: TypeEntry };
}

/** The record of one version. */
export interface StoredSchema {
  readonly schema: JsonSchema;
}

const VERSION = /^(0|[1-9]\d{0,8})(\.(0|[1-9]\d{0,8})){0,2}$/;

export function checkVersion(value: unknown, field = "version"): string {
  const text = typeof value === "number" ? String(value) : value;
  if (typeof text === "string" && VERSION.test(text) && text !== "0") return text;
  throw refuse("invalid_version", field, value, 'use a whole number from 1, or up to three such as "1.4.0"');
}

/** The version that a job names, if it is one. Other values are kept with the job and mean nothing here. */
export function versionOf(value: unknown): string | undefined {
  const text = typeof value === "number" ? String(value) : value;
  return typeof text === "string" && VERSION.test(text) ? text : undefined;
}

/** Whole numbers are numbers on the wire; the others are texts. */
export function versionField(version: string): number | string {
  return version.includes(".") ? version : Number(version);
}

/** A job carries the version of its definition, under the name that the wire has for it. */
export function versionWire(version: string | undefined) {
  return version === undefined ? undefined : { fields: { version: versionField(version) } };
}

export function compareVersions(a: string, b: string): number {
  const [left, right] = [a.split(".").map(Number), b.split(".").map(Number)];
  for (let index = 0; index < 3; index++) {
    const by = (left[index] ?? 0) - (right[index] ?? 0);
    if (by !== 0) return by;
  }
  // 1 and 1.0 are different names of one place in the order.
  return left.length - right.length;
}

export function checkUri(value: unknown, type: string, version: string): string {
  if (value === undefined || value === null) return `urn:ojs:schema:${type}:${version}`;
  if (
    typeof value === "string" &&
    value.length <= URI_LIMIT &&
    /^[a-z][a-z0-9+.-]*:[\x21-\x7e]+$/i.test(value)
  )
    return value;
  throw refuse("invalid_option", "uri", value, `use a URI of up to ${URI_LIMIT} characters, or leave it out`);
}

export function newestOf({ versions }: TypeEntry): VersionEntry {
  return versions.at(-1) as VersionEntry;
}

/** The version that a job is checked against; undefined if it is not checked. */
export function versionFor(
  { validation, versions }: TypeEntry,
  said: { readonly version?: unknown; readonly schema?: unknown },
): string | undefined {
  const named = versions.find(({ uri }) => uri === said.schema)?.version ?? versionOf(said.version);
  if (versions.some(({ version }) => version === named)) return named;
  if (validation === "named") return undefined;
  return named ?? newestOf({ versions } as TypeEntry).version;
}
