import { type AuditAbout, type AuditEntry, auditKey, type By } from "../../core/audit/audit-entry.ts";
import { checkCount, refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { UUID } from "../../core/ids.ts";
import type { Instant } from "../../core/time.ts";
import type { Effect } from "../../ports/store.ts";
import { recordKind, type StoredRecord } from "../commit/record-kind.ts";
import type { EngineContext } from "../context.ts";

/** Audit entries. Their `wakeAt` is the end of their retention. */
export const AUDIT = recordKind<Omit<AuditEntry, "id">>("audit");

export interface AuditOptions {
  /** The id of an entry: continues with older ones. */
  readonly after?: string | null;
  /** From 1 to 1,000; default 100. */
  readonly limit?: number;
  readonly actor?: string;
  /** Such as `job.cancel`. `job.*` matches all actions that begin with `job.`. */
  readonly action?: string;
  readonly job?: string;
  readonly queue?: string;
}

export interface AuditPage {
  /** Newest first. */
  readonly entries: readonly AuditEntry[];
  /** Continues after the last entry that was read; null if there was none. */
  readonly cursor: string | null;
  readonly hasMore: boolean;
}

const NO_EFFECTS: readonly Effect[] = [];
const PAGE = 500;
const LIMIT = 1_000;
/** A read scans at most this many pages, so that a filter without matches ends. Its cursor continues from there. */
const MOST_PAGES = 20;

/** The audit entry of an action, for the unit that commits it; none without an operator. */
export function auditEffects(
  { nextId, auditKept }: Pick<EngineContext, "nextId" | "auditKept">,
  by: By | undefined,
  action: string,
  about: AuditAbout,
  at: Instant,
): readonly Effect[] {
  if (by === undefined) return NO_EFFECTS;
  const body = { at, actor: by.actor, reason: by.reason ?? null, action, ...about };
  return [AUDIT.put(auditKey(nextId()), body, at + auditKept)];
}

/** What operators did: who, what, when and why. Each entry is written in the commit of its action. */
export class AuditLog {
  readonly #context: EngineContext;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  async read(options: AuditOptions = {}): Promise<AuditPage> {
    checkOptions(options);
    const { limit = 100, after = null } = options;
    const entries: AuditEntry[] = [];
    let key = after === null ? null : auditKey(after);
    for (let pages = 0; pages < MOST_PAGES; pages++) {
      const page: StoredRecord<Omit<AuditEntry, "id">>[] = await AUDIT.list(this.#context.store, key, PAGE);
      for (const [index, { name, body }] of page.entries()) {
        key = name;
        const entry = { id: auditKey(name), ...body };
        if (!matches(entry, options)) continue;
        entries.push(entry);
        if (entries.length === limit)
          return { entries, cursor: entry.id, hasMore: index + 1 < page.length || page.length === PAGE };
      }
      if (page.length < PAGE) return { entries, cursor: key === null ? null : auditKey(key), hasMore: false };
    }
    return { entries, cursor: key === null ? null : auditKey(key), hasMore: true };
  }
}

function matches(entry: AuditEntry, { actor, action, job, queue }: AuditOptions): boolean {
  return (
    (actor === undefined || entry.actor === actor) &&
    (job === undefined || isAbout(entry, job)) &&
    (queue === undefined || entry.queue === queue) &&
    (action === undefined ||
      (action.endsWith(".*") ? entry.action.startsWith(action.slice(0, -1)) : entry.action === action))
  );
}

/** The entry of a bulk action has the ids of its jobs among the details. */
function isAbout({ job, details }: AuditEntry, id: string): boolean {
  return job === id || (Array.isArray(details?.jobs) && details.jobs.includes(id));
}

function checkOptions(options: AuditOptions): void {
  refuseUnknownKeys(options, "audit", ["after", "limit", "actor", "action", "job", "queue"]);
  const { after = null, limit = 100, actor, action, job, queue } = options;
  if (after !== null && !UUID.test(after))
    throw refuse("invalid_option", "after", after, "pass the id of an entry, or leave it out for the newest");
  checkCount(limit, "limit", LIMIT);
  for (const [field, value] of Object.entries({ actor, action, job, queue })) {
    if (value !== undefined && typeof value !== "string")
      throw refuse("invalid_option", field, value, "pass a text, or leave it out for all");
  }
}
