import { type Cell, cellOfId, cellOfName, type Home, homeOf } from "../../../src/core/home/cell.ts";
import { cellOfRecord, cellOfSaga, cellOfTimeoutKey } from "../../../src/core/home/cell-of-row.ts";
import {
  BATCH_LIMIT,
  type Effect,
  type Guard,
  type Outcome,
  type RecordKey,
  type RecordRow,
  type Unit,
} from "../../../src/ports/store.ts";
import type { HomeStore } from "../../../src/stores/homes/home-store.ts";

type Report = (rule: string, says: string) => void;

/** Records that every home has a copy of, or writes for itself. */
const OWN_KINDS: ReadonlySet<string> = new Set(["pause", "limit", "copied"]);

const ONCE = "an outbox message is applied once";

interface Message {
  readonly from: Home;
  readonly to: Home;
  readonly sentAt: number;
  appliedAt: number;
  times: number;
  /** A home forgot the sending or the delivery. */
  mayBeLost: boolean;
}

function newMessage(from: Home, { to }: { readonly to: Home }, sentAt: number): Message {
  return { from, to, sentAt, appliedAt: Number.NEGATIVE_INFINITY, times: 0, mayBeLost: false };
}

/** Whether the unit only keeps the mark of a message for longer. */
function isKept({ when = [] }: Unit): boolean {
  return when.some((guard) => "record" in guard && guard.record[0] === "delivered" && guard.version > 0);
}

/**
 * What must hold between homes: a unit touches rows of one home, every message reaches its home once, and no message is
 * left. It looks at what each home commits, below the router.
 */
export class HomeRules {
  readonly #homes: number;
  readonly #report: Report;
  /** Messages that a committed unit sent, by id. */
  readonly #messages = new Map<string, Message>();
  readonly #now: () => number;
  /** Versions that records had, also those that their home forgot, and the rows that were seen. */
  readonly #versions = new Set<string>();
  readonly #rows = new WeakSet<RecordRow>();
  /** The records that each home was given, by name. */
  readonly #keys = new Map<Home, Map<string, RecordKey>>();

  constructor(homes: number, now: () => number, report: Report) {
    this.#homes = homes;
    this.#now = now;
    this.#report = report;
  }

  get messages(): number {
    return this.#messages.size;
  }

  /** The home with a look at each of its commits. */
  watch(home: Home, store: HomeStore): HomeStore {
    return {
      ...store,
      get inspect() {
        return store.inspect;
      },
      commit: async (units, options) => {
        const outcomes = await store.commit(units, options);
        for (const [index, unit] of units.entries()) this.#committed(home, unit, outcomes[index] as Outcome);
        await this.#checkVersions(home, store, units);
        return outcomes;
      },
      jobs: {
        ...store.jobs,
        enqueue: async (jobs, options) => {
          for (const { id } of jobs) this.#checkCell(home, cellOfId(id), id);
          return store.jobs.enqueue(jobs, options);
        },
      },
    };
  }

  /**
   * A home forgot what it wrote after this moment: what it sent may be missing, and what it applied may come again. What it
   * still has are the rows that it had, in new objects.
   */
  async forgot(home: Home, after: number, { records }: HomeStore): Promise<void> {
    const keys = [...(this.#keys.get(home)?.values() ?? [])];
    for (let from = 0; from < keys.length; from += BATCH_LIMIT)
      for (const row of await records.load(keys.slice(from, from + BATCH_LIMIT)))
        if (row) this.#rows.add(row);
    for (const message of this.#messages.values()) {
      if (message.from === home && message.sentAt > after) message.mayBeLost = true;
      if (message.to !== home || message.appliedAt <= after) continue;
      message.mayBeLost = true;
      message.times = 0;
    }
  }

  /** When all is over: what was sent and not applied. */
  async checkEnd(homes: readonly HomeStore[]): Promise<void> {
    for (const [id, { times, mayBeLost }] of this.#messages)
      if (times === 0 && !mayBeLost) this.#report(ONCE, `${id} was never applied`);
    for (const [home, { records }] of homes.entries()) {
      const left = await records.list("outbox", null, 10);
      if (left.length > 0)
        this.#report("no outbox message is left", `home ${home} still has ${left[0]?.key[1]}`);
    }
  }

  #committed(home: Home, unit: Unit, outcome: Outcome): void {
    if (unit.job) this.#checkCell(home, cellOfId(unit.job.id), unit.job.id);
    for (const guard of unit.when ?? []) this.#checkCell(home, cellOfGuard(guard), guard);
    for (const effect of unit.effects ?? []) this.#checkCell(home, cellOfEffect(effect), effect);
    if (outcome.ok) for (const effect of unit.effects ?? []) this.#count(home, unit, effect);
  }

  /** A version that comes again would let a guard hold that was made for a record that the home forgot. */
  async #checkVersions(home: Home, { records }: HomeStore, units: readonly Unit[]): Promise<void> {
    const puts = units.flatMap(({ effects = [] }) =>
      effects.flatMap((one) => ("put" in one ? [one.put] : [])),
    );
    if (puts.length === 0) return;
    const keys = this.#keys.get(home) ?? new Map<string, RecordKey>();
    this.#keys.set(home, keys);
    for (const key of puts) keys.set(key.join(" "), key);
    for (const row of await records.load(puts)) {
      if (!row || this.#rows.has(row)) continue;
      this.#rows.add(row);
      const name = `${home} ${row.key.join(" ")} ${row.version}`;
      if (this.#versions.has(name))
        this.#report(
          "no version is used again",
          `home ${home}: ${row.key.join(" ")} has ${row.version} twice`,
        );
      this.#versions.add(name);
    }
  }

  #count(home: Home, unit: Unit, effect: Effect): void {
    if (!("put" in effect)) return;
    const [kind, id] = effect.put;
    // A copy may be made several times: it is always that of the last change.
    if (kind === "outbox" && "effects" in (effect.body as object) && !this.#messages.has(id))
      this.#messages.set(id, newMessage(home, effect.body as unknown as { to: Home }, this.#now()));
    if (kind !== "delivered") return;
    const { of } = effect.body as { of: string };
    const message = this.#messages.get(of);
    if (!message || isKept(unit)) return;
    message.times += 1;
    message.appliedAt = this.#now();
    if (message.times > 1) this.#report(ONCE, `${of} was applied ${message.times} times`);
  }

  /** `what` is made a text only if it is reported: most of the time goes into texts otherwise. */
  #checkCell(home: Home, cell: Cell | undefined, what: string | Guard | Effect): void {
    if (cell === undefined) return;
    const own = homeOf(cell, this.#homes);
    if (own === home) return;
    const text = JSON.stringify(what).slice(0, 200);
    this.#report("a unit never spans homes", `home ${home} was given ${text}, which is in home ${own}`);
  }
}

function cellOfGuard(guard: Guard): Cell | undefined {
  if ("record" in guard) return cellOfKey(guard.record);
  return cellOfId("timeout" in guard ? guard.timeout : guard.idle);
}

function cellOfKey(key: RecordKey): Cell | undefined {
  return OWN_KINDS.has(key[0]) ? undefined : cellOfRecord(key);
}

function cellOfEffect(effect: Effect): Cell | undefined {
  if ("put" in effect) return cellOfKey(effect.put);
  if ("delete" in effect) return cellOfKey(effect.delete);
  if ("enqueue" in effect) return cellOfId(effect.enqueue.id);
  if ("countdown" in effect) return cellOfId(effect.countdown);
  if ("admit" in effect) return cellOfName(effect.admit);
  if ("spend" in effect) return cellOfName(effect.spend);
  if ("request" in effect) return cellOfId(effect.request.id);
  if ("remove" in effect) return cellOfId(effect.remove);
  if ("log" in effect) return cellOfId(effect.job);
  if (!("revoke" in effect)) return undefined;
  const { revoke } = effect;
  if ("id" in revoke) return cellOfId(revoke.id);
  return "saga" in revoke ? cellOfSaga(revoke.saga) : cellOfTimeoutKey(revoke.destination, revoke.key);
}
