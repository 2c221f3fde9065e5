import { type AuditAbout, type AuditEntry, auditKey, type By } from "../../core/audit/audit-entry.ts";
import { refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { UUID } from "../../core/ids.ts";
import type { Instant } from "../../core/time.ts";
import type { Effect } from "../../ports/store.ts";
import { recordKind, type StoredRecord } from "../commit/records.ts";
import type { EngineContext } from "../context.ts";

/** Entries of the audit. Their `wakeAt` is when they need not be kept any longer. */
export const AUDIT = recordKind<Omit<AuditEntry, "id">>("audit");

export interface AuditOptions {
  /** The id of an entry: reading goes on with those before it. */
  readonly after?: string | null;
  /** The most entries to give, up to 1,000. Default 100. */
  readonly limit?: number;
  readonly actor?: string;
  /** Such as `job.cancel`; `job.*` stands for all that begin so. */
  readonly action?: string;
  readonly job?: string;
  readonly queue?: string;
}

export interface AuditPage {
  /** The newest first. */
  readonly entries: readonly AuditEntry[];
  /** Goes on behind the last entry that was looked at; null if there was none. */
  readonly cursor: string | null;
  readonly hasMore: boolean;
}

const NOTHING: readonly Effect[] = [];
const PAGE = 500;
const LIMIT = 1_000;
/** A question that fits nothing must come to an end: its cursor goes on where it stopped. */
const MOST_PAGES = 20;

/** The entry of an action, as effects of the unit that commits it: none where nobody was named. */
export function auditEffects(
  { nextId, auditKept }: Pick<EngineContext, "nextId" | "auditKept">,
  by: By | undefined,
  action: string,
  about: AuditAbout,
  at: Instant,
): readonly Effect[] {
  if (by === undefined) return NOTHING;
  const body = { at, actor: by.actor, reason: by.reason ?? null, action, ...about };
  return [AUDIT.put(auditKey(nextId()), body, at + auditKept)];
}

/** What operators did: who, what, when and why, written in the commit of the action itself. */
export class AuditLog {
  readonly #parts: EngineContext;

  constructor(parts: EngineContext) {
    this.#parts = parts;
  }

  /** Entries, the newest first. */
  async read(options: AuditOptions = {}): Promise<AuditPage> {
    checkOptions(options);
    const { limit = 100, after = null } = options;
    const entries: AuditEntry[] = [];
    let key = after === null ? null : auditKey(after);
    for (let pages = 0; pages < MOST_PAGES; pages++) {
      const page: StoredRecord<Omit<AuditEntry, "id">>[] = await AUDIT.list(this.#parts.store, key, PAGE);
      for (const [index, { name, body }] of page.entries()) {
        key = name;
        const entry = { id: auditKey(name), ...body };
        if (!fits(entry, options)) continue;
        entries.push(entry);
        if (entries.length === limit)
          return { entries, cursor: entry.id, hasMore: index + 1 < page.length || page.length === PAGE };
      }
      if (page.length < PAGE) return { entries, cursor: key === null ? null : auditKey(key), hasMore: false };
    }
    return { entries, cursor: key === null ? null : auditKey(key), hasMore: true };
  }
}

function fits(entry: AuditEntry, { actor, action, job, queue }: AuditOptions): boolean {
  return (
    (actor === undefined || entry.actor === actor) &&
    (job === undefined || entry.job === job) &&
    (queue === undefined || entry.queue === queue) &&
    (action === undefined ||
      (action.endsWith(".*") ? entry.action.startsWith(action.slice(0, -1)) : entry.action === action))
  );
}

function checkOptions(options: AuditOptions): void {
  refuseUnknownKeys(options, "audit", ["after", "limit", "actor", "action", "job", "queue"]);
  const { after = null, limit = 100, actor, action, job, queue } = options;
  if (after !== null && !UUID.test(after))
    throw refuse("invalid_option", "after", after, "pass the id of an entry, or leave it out for the newest");
  if (!Number.isInteger(limit) || limit < 1 || limit > LIMIT)
    throw refuse("invalid_limit", "limit", limit, `use a whole number from 1 to ${LIMIT}`);
  for (const [field, value] of Object.entries({ actor, action, job, queue })) {
    if (value !== undefined && typeof value !== "string")
      throw refuse("invalid_option", field, value, "pass a text, or leave it out for all");
  }
}
