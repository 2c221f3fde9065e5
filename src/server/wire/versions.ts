import { show } from "../../core/errors.ts";
import type { VersionSet } from "../../core/registry/job-version.ts";
import { checkVersion, versionField } from "../../core/registry/registered-schema.ts";
import type { Json } from "../../core/schema.ts";
import { refusedField } from "../http/http-error.ts";

/** The type of a job without the version that may stand behind it: `card.charge@2.0`. */
export function splitType(said: string): { readonly type: string; readonly version?: number | string } {
  const at = said.indexOf("@");
  if (at < 0) return { type: said };
  return { type: said.slice(0, at), version: versionField(checkVersion(said.slice(at + 1), "type")) };
}

type Said = number | string | readonly (number | string)[];
interface Handler {
  readonly type: string;
  readonly versions?: Said | null | undefined;
}
export type Versions = ReadonlyMap<string, VersionSet>;

type Bound = readonly [operator: string, version: string];
const BOUND = /^(>=|<=|>|<|=)?(\d[\d.]*)$/;
const MOST_BOUNDS = 10;

/** The versions within bounds, such as `>=1.0 <3.0`. */
function rangeOf(bounds: readonly Bound[]): VersionSet {
  return {
    includes: (version) => bounds.every(([operator, bound]) => fits(placeOf(version, bound), operator)),
  };
}

function fits(place: number, operator: string): boolean {
  if (place === 0) return operator.endsWith("=");
  return operator.startsWith(place < 0 ? "<" : ">");
}

/** Below 0 if the version is before the other one. In ranges, 2 and 2.0 are the same. */
function placeOf(version: string, other: string): number {
  const [left, right] = [version.split(".").map(Number), other.split(".").map(Number)];
  for (let index = 0; index < 3; index++) {
    const by = (left[index] ?? 0) - (right[index] ?? 0);
    if (by !== 0) return by;
  }
  return 0;
}

/** Versions as a list, as one, or as a range; undefined for all of them. */
function readSaid(said: Said, field: string): VersionSet | undefined {
  if (typeof said === "object") return said.map((each) => checkVersion(each, field));
  const words = String(said).trim().split(/\s+/);
  if (words.includes("*")) return undefined;
  if (words.length > MOST_BOUNDS)
    throw refusedField(field, `${show(said)} has ${words.length} parts; use at most ${MOST_BOUNDS}`);
  return rangeOf(words.map((word) => boundOf(word, field, said)));
}

function boundOf(word: string, field: string, said: Said): Bound {
  const [, operator = "=", version] = BOUND.exec(word) ?? [];
  if (version === undefined)
    throw refusedField(
      field,
      `${show(said)} is not a range of versions; use "*", a version such as "2.0", bounds such as ">=1.0 <3.0", or a list`,
    );
  return [operator, checkVersion(version, field)];
}

function readAll(said: Iterable<readonly [type: string, said: Said, field: string]>): Versions {
  const versions = new Map<string, VersionSet>();
  for (const [type, value, field] of said) {
    const read = readSaid(value, field);
    if (read) versions.set(type, read);
  }
  return versions;
}

/** The versions that a worker runs, by type, from either field of a fetch; undefined if it says none. */
export function readVersions(
  versions: Readonly<Record<string, Said>> | null | undefined,
  handlers: readonly Handler[] | null | undefined,
): Versions | undefined {
  if (versions != null && handlers != null)
    throw refusedField("handlers", "it says what versions says, too; send one of them");
  if (versions != null)
    return readAll(Object.entries(versions).map(([type, said]) => [type, said, `versions.${type}`] as const));
  if (handlers != null)
    return readAll(
      handlers.map(
        ({ type, versions: said }, index) => [type, said ?? "*", `handlers.${index}.versions`] as const,
      ),
    );
  return undefined;
}

/** What a worker said of its handlers in its last beat. */
export function handlersOf(
  about: { readonly [key: string]: Json } | undefined,
): readonly Handler[] | undefined {
  return about?.handlers as unknown as readonly Handler[] | undefined;
}
