import { type By, parseBy } from "../../core/audit/audit-entry.ts";
import { refuseUnknownKeys } from "../../core/errors.ts";
import {
  checkLimitKey,
  effectiveLimit,
  type KeyLimit,
  type LimitOverride,
  parseOverride,
  type RateOptions,
  roomOf,
} from "../../core/limit/limit.ts";
import type { Instant } from "../../core/time.ts";
import { type Effect, type LimitRow, limitRecordKey, queueMark } from "../../ports/store.ts";
import { commitUnits } from "../commit/commit.ts";
import { recordKind } from "../commit/records.ts";
import { ADMITTED_AT_ONCE } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { auditEffects } from "../events/audit-log.ts";

/** Overrides of limits; the store reads them when it admits jobs. */
const LIMITS = recordKind<LimitOverride>(limitRecordKey("")[0]);

/** What an operator may say about a key; `"none"` lifts a part, and what is left out is as its jobs say. */
export interface LimitChange {
  readonly concurrency?: number | "none";
  readonly rate?: RateOptions | "none";
}

/** A limit as it stands. */
export interface LimitView {
  readonly key: string;
  /** What holds: an operator's word before that of the jobs; null where neither is known. Durations in milliseconds. */
  readonly limit: KeyLimit | null;
  /** What an operator said, or null. */
  readonly override: LimitOverride | null;
  /** Jobs that hold a place: let through, claimed or running. */
  readonly inUse: number;
  /** Starts that count against the rate now. */
  readonly starts: number;
  readonly waiting: number;
  /** How many more could be let through now. */
  readonly room: number;
  /** When the first start no longer counts against the rate, if one does. */
  readonly nextAt: Instant | null;
}

/** What operators do with limits: look at them, overrule what jobs say, and leave it to the jobs again. */
export class Limits {
  readonly #parts: EngineContext;
  readonly #assertOpen: () => void;

  constructor(parts: EngineContext, assertOpen: () => void) {
    this.#parts = parts;
    this.#assertOpen = assertOpen;
  }

  /** Overrules what the jobs of a key say, in all processes, from the moment this resolves. */
  async put(key: string, change: LimitChange, by?: By): Promise<LimitView> {
    const limitKey = checkLimitKey(key, "key");
    const override = parseOverride(change, "limit");
    await this.#change(limitKey, LIMITS.put(limitKey, override, null), "put", by, { ...override });
    return this.get(limitKey);
  }

  /** Leaves the limit of a key to its jobs again. */
  async delete(key: string, by?: By): Promise<LimitView> {
    const limitKey = checkLimitKey(key, "key");
    await this.#change(limitKey, LIMITS.remove(limitKey), "delete", by);
    return this.get(limitKey);
  }

  async get(key: string): Promise<LimitView> {
    const { store } = this.#parts;
    const limitKey = checkLimitKey(key, "key");
    const [row, own, record] = await Promise.all([
      store.inspect.limitKey(limitKey),
      this.#ownLimit(limitKey),
      LIMITS.load(store, limitKey),
    ]);
    return viewOf(row, own, record?.body ?? null);
  }

  /** Limits with an override or with live jobs, in the order of their keys; `after` is the last key of the page before. */
  async list(page: { readonly after?: string; readonly limit?: number } = {}): Promise<LimitView[]> {
    refuseUnknownKeys(page, "page", ["after", "limit"]);
    const { store } = this.#parts;
    const { after = null, limit = 100 } = page;
    const [limits, overrides] = await Promise.all([this.#limits(after, limit), LIMITS.all(store)]);
    const keys = new Set(limits);
    for (const key of overrides.keys()) if (after === null || key > after) keys.add(key);
    const sorted = [...keys].sort((a, b) => (a < b ? -1 : 1));
    return Promise.all(sorted.slice(0, limit).map((key) => this.get(key)));
  }

  /** Keys with live jobs; marks of queues are limits too, and are left out. */
  async #limits(after: string | null, limit: number): Promise<string[]> {
    const found: string[] = [];
    for (let last = after; ; ) {
      const page = await this.#parts.store.inspect.limitKeys(last, limit);
      for (const { key: limitKey } of page) if (!limitKey.startsWith(queueMark(""))) found.push(limitKey);
      if (page.length < limit || found.length >= limit) return found;
      last = (page[page.length - 1] as LimitRow).key;
    }
  }

  /** What one of its live jobs says, the one that came first. */
  async #ownLimit(limitKey: string): Promise<KeyLimit | null> {
    const [row] = await this.#parts.store.inspect.jobs({ limitKey }, null, 1);
    return row?.options?.limit ?? null;
  }

  /** Those that wait are let through as far as the new limit has room, a batch at a time. */
  async #change(
    limitKey: string,
    effect: Effect,
    action: "put" | "delete",
    by: By | undefined,
    said?: object,
  ): Promise<void> {
    this.#assertOpen();
    const { store, clock, bus, recorder } = this.#parts;
    const limit = (await this.#ownLimit(limitKey)) ?? {};
    const now = clock.now();
    const details = { key: limitKey, ...said };
    const effects = [
      effect,
      ...recorder.effects("limit.changed", { at: now, subject: limitKey }),
      ...auditEffects(this.#parts, by && parseBy(by), `limit.${action}`, { details }, now),
    ];
    await commitUnits(this.#parts, [{ effects }]);
    for (let waiting = Number.POSITIVE_INFINITY; ; ) {
      const admit = { admit: limitKey, count: ADMITTED_AT_ONCE, limit };
      await commitUnits(this.#parts, [{ effects: [admit] }]);
      const left = (await store.inspect.limitKey(limitKey)).waiting;
      if (left === 0 || left >= waiting) break;
      waiting = left;
    }
    bus.emit({ name: "limit.changed", at: clock.now(), key: limitKey });
  }
}

function viewOf(row: LimitRow, own: KeyLimit | null, override: LimitOverride | null): LimitView {
  const limit = own === null && override === null ? null : effectiveLimit(own ?? {}, override);
  return {
    key: row.key,
    limit: limit && {
      ...(limit.concurrency !== undefined && { concurrency: limit.concurrency }),
      ...(limit.rate !== undefined && { rate: limit.rate }),
      ...(limit.strict && { strict: limit.strict }),
    },
    override,
    inUse: row.available + row.active + (limit?.strict ? row.retryable : 0),
    starts: row.starts,
    waiting: row.waiting,
    room: limit === null ? 0 : Math.min(roomOf(limit, row), Number.MAX_SAFE_INTEGER),
    nextAt: row.nextAt,
  };
}
