import { refuse, refuseUnknownKeys } from "../errors.ts";
import type { Json } from "../schema.ts";
import type { Instant } from "../time.ts";

/** Who acts, and why. */
export interface By {
  /** A person, a key or a program: 1 to 100 characters. */
  readonly actor: string;
  /** Up to 500 characters. */
  readonly reason?: string;
}

/** Who made a change that lasts, as its record keeps it: an operator, or a program that named none. */
export interface ChangedBy {
  readonly actor: string | null;
  readonly reason: string | null;
  /** The machine of the program. */
  readonly host: string | null;
}

export function changedBy(by: By | undefined, host: string | null): ChangedBy {
  return { actor: by?.actor ?? null, reason: by?.reason ?? null, host };
}

/** `, by mia (deploy)` or `, by a program on host web-1`; nothing for a record of an older curfew. */
export function changedByText(by: ChangedBy | null | undefined): string {
  if (!by) return "";
  const { actor, reason, host } = by;
  const why = reason === null || reason === "" ? "" : ` (${reason})`;
  if (actor !== null) return `, by ${actor}${why}`;
  return `, by a program${host === null ? "" : ` on host ${host}`} that named no operator`;
}

/** One recorded action of an operator. It contains neither payloads nor results. */
export interface AuditEntry {
  /** A UUIDv7. */
  readonly id: string;
  readonly at: Instant;
  readonly actor: string;
  readonly reason: string | null;
  /** For example `job.cancel` or `queue.pause`. */
  readonly action: string;
  readonly job?: string;
  readonly queue?: string;
  /** Further facts about the action. */
  readonly details?: { readonly [key: string]: Json };
}

/** The subject of an entry. */
export type AuditAbout = Pick<AuditEntry, "job" | "queue" | "details">;

const ACTOR_LIMIT = 100;
const REASON_LIMIT = 500;

export function parseBy(by: By, field = "by"): By {
  if (typeof by !== "object" || by === null)
    throw refuse("invalid_option", field, by, 'write { actor: "mia", reason: "…" }');
  refuseUnknownKeys(by, field, ["actor", "reason"]);
  const { actor, reason } = by;
  if (typeof actor !== "string" || actor.trim() === "" || actor.length > ACTOR_LIMIT)
    throw refuse(
      "invalid_option",
      `${field}.actor`,
      actor,
      `name the actor in 1 to ${ACTOR_LIMIT} characters`,
    );
  if (reason !== undefined && (typeof reason !== "string" || reason.length > REASON_LIMIT))
    throw refuse(
      "invalid_option",
      `${field}.reason`,
      reason,
      `write a text of up to ${REASON_LIMIT} characters`,
    );
  return reason === undefined ? { actor } : { actor, reason };
}

/**
 * The storage key of an entry, and the way back from it. It inverts every hex digit of the id, so that a list in key
 * order starts with the newest entry.
 */
export function auditKey(id: string): string {
  return id.replace(/[0-9a-f]/g, (digit) => (15 - Number.parseInt(digit, 16)).toString(16));
}
