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
import { recordKind } from "../commit/record-kind.ts";
import { ADMITTED_AT_ONCE } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { auditEffects } from "../events/audit-log.ts";

/** Overrides of limits; the store reads them when it admits jobs. */
const LIMITS = recordKind<LimitOverride>(limitRecordKey("")[0]);

/** What an operator overrides. `"none"` lifts that part of the limit; a part that is left out stays as the jobs say. */
export interface LimitChange {
  readonly concurrency?: number | "none";
  readonly rate?: RateOptions | "none";
}

export interface LimitView {
  readonly key: string;
  /** The limit in force: the operator's override, else the jobs' own; null if neither is known. In milliseconds. */
  readonly limit: KeyLimit | null;
  /** The operator's override. */
  readonly override: LimitOverride | null;
  /** Jobs that hold a slot: admitted, claimed or running. */
  readonly inUse: number;
  /** Starts that count against the rate now. */
  readonly starts: number;
  readonly waiting: number;
  /** How many more jobs could be admitted now. */
  readonly room: number;
  /** When the oldest start leaves the rate's window; null if no start counts. */
  readonly nextAt: Instant | null;
}

/** Reads limits, overrides what jobs say, and removes overrides. */
export class Limits {
  readonly #context: EngineContext;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** Overrides what the jobs of a key say, in all processes, from the moment this resolves. */
  async put(key: string, change: LimitChange, by?: By): Promise<LimitView> {
    const limitKey = checkLimitKey(key, "key");
    const override = parseOverride(change, "limit");
    await this.#change(limitKey, LIMITS.put(limitKey, override, null), "put", by, { ...override });
    return this.get(limitKey);
  }

  /** Removes the override: the jobs' own limit is in force again. */
  async delete(key: string, by?: By): Promise<LimitView> {
    const limitKey = checkLimitKey(key, "key");
    await this.#change(limitKey, LIMITS.remove(limitKey), "delete", by);
    return this.get(limitKey);
  }

  async get(key: string): Promise<LimitView> {
    const { store } = this.#context;
    const limitKey = checkLimitKey(key, "key");
    const [row, own, record] = await Promise.all([
      store.inspect.limitKey(limitKey),
      this.#ownLimit(limitKey),
      LIMITS.load(store, limitKey),
    ]);
    return viewOf(row, own, record?.body ?? null);
  }

  /** Limits with an override or live jobs, in the order of their keys; `after` is the last key of the page before. */
  async list(page: { readonly after?: string; readonly limit?: number } = {}): Promise<LimitView[]> {
    refuseUnknownKeys(page, "page", ["after", "limit"]);
    const { store } = this.#context;
    const { after = null, limit = 100 } = page;
    const [limits, overrides] = await Promise.all([this.#limits(after, limit), LIMITS.all(store)]);
    const keys = new Set(limits);
    for (const key of overrides.keys()) if (after === null || key > after) keys.add(key);
    const sorted = [...keys].sort((a, b) => (a < b ? -1 : 1));
    return Promise.all(sorted.slice(0, limit).map((key) => this.get(key)));
  }

  /** Keys with live jobs. Marks of queues are limits too, and are left out. */
  async #limits(after: string | null, limit: number): Promise<string[]> {
    const keys: string[] = [];
    for (let last = after; ; ) {
      const page = await this.#context.store.inspect.limitKeys(last, limit);
      for (const { key: limitKey } of page) if (!limitKey.startsWith(queueMark(""))) keys.push(limitKey);
      if (page.length < limit || keys.length >= limit) return keys;
      last = (page[page.length - 1] as LimitRow).key;
    }
  }

  /** The limit of the first live job of this key. */
  async #ownLimit(limitKey: string): Promise<KeyLimit | null> {
    const [row] = await this.#context.store.inspect.limitJobs(limitKey, null, 1);
    return row?.options?.limit ?? null;
  }

  /** Admits waiting jobs in batches, as far as the new limit has room. */
  async #change(
    limitKey: string,
    effect: Effect,
    action: "put" | "delete",
    by: By | undefined,
    said?: object,
  ): Promise<void> {
    this.#context.assertOpen();
    const { store, clock, bus, recorder } = this.#context;
    const limit = (await this.#ownLimit(limitKey)) ?? {};
    const now = clock.now();
    const details = { key: limitKey, ...said };
    const effects = [
      effect,
      ...recorder.effects("limit.changed", { at: now, subject: limitKey }),
      ...auditEffects(this.#context, by && parseBy(by), `limit.${action}`, { details }, now),
    ];
    await commitUnits(this.#context, [{ effects }]);
    for (let waiting = Number.POSITIVE_INFINITY; ; ) {
      const admit = { admit: limitKey, count: ADMITTED_AT_ONCE, limit };
      await commitUnits(this.#context, [{ effects: [admit] }]);
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
