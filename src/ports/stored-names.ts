import { tenantOf, tenantPrefix } from "../core/tenant/tenant-name.ts";

/* Names that stores and engines must build in the same way. */

export type RecordKey = readonly [kind: string, key: string];

/**
 * The record that pauses a queue while it exists. Every claim reads it, so a pause takes effect when it is committed.
 */
export function pauseKey(queue: string): RecordKey {
  return ["pause", queue];
}

/** The record that overrides the limit that jobs of this key name (a `LimitOverride`). `admit` and `spend` read it. */
export function limitRecordKey(limitKey: string): RecordKey {
  return ["limit", limitKey];
}

/** The kind of the records that remember the starts under a limit. Each wakes when its start no longer counts. */
export const START_KIND = "start";

export function startKey(limitKey: string, by: string): RecordKey {
  return [START_KIND, `${startsOf(limitKey).from}${by}`];
}

/**
 * The range of the keys of a limit's starts. The length comes first, so that no limit key is the prefix of another.
 */
export function startsOf(limitKey: string): { readonly from: string; readonly to: string } {
  const name = `${limitKey.length} ${limitKey}`;
  return { from: `${name} `, to: `${name}!` };
}

/** The limit key of a job that names none and was claimed under the limit of its queue. */
export function queueMark(queue: string): string {
  const tenant = tenantOf(queue);
  if (tenant === undefined) return `queue ${queue}`;
  const prefix = tenantPrefix(tenant);
  return `${prefix}queue ${queue.slice(prefix.length)}`;
}
