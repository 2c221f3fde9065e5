import assert from "node:assert/strict";
import type { Cell } from "../../core/home/cell.ts";
import { type Random, seededRandom } from "../../core/random.ts";
import type { Instant } from "../../core/time.ts";
import type { NewTimeout, Owner, TimeoutId, TimeoutRow } from "../../core/timeout/timeout.ts";
import type { DueRequest, TimeoutStore } from "../../ports/timeouts.ts";

/** A timeout store on new, empty data. It need not implement the other ports. */
export interface OpenedTimeoutStore {
  readonly timeouts: TimeoutStore;
  /** The store's time. */
  clock(): Promise<Instant>;
  close(): Promise<void>;
  /** A second handle on the same data, over its own connection if the store has connections. */
  another?(): Promise<Pick<OpenedTimeoutStore, "timeouts" | "close">>;
  /** The same data after all handles were closed. Left out by a store whose data ends with the process. */
  reopen?(): Promise<Pick<OpenedTimeoutStore, "timeouts" | "close">>;
  /** Frees what `open` took. */
  dispose?(): Promise<void>;
}

/** A timeout store on new data, with shortcuts for what cases often do. */
export interface TimeoutBed {
  readonly timeouts: TimeoutStore;
  readonly opened: OpenedTimeoutStore;
  /** The store's time when the case began. Cases count from here and pass time themselves. */
  readonly now: Instant;
  readonly random: Random;
  /** This many handles on the same data. The first one is `timeouts`. */
  handles(count: number): Promise<TimeoutStore[]>;
  /** A timeout that is due now, unless the sketch says otherwise. */
  timeout(sketch?: Partial<NewTimeout>): NewTimeout;
  /** Inserts one timeout and returns its row. */
  add(sketch?: Partial<NewTimeout>): Promise<TimeoutRow>;
  addMany(timeouts: readonly NewTimeout[]): Promise<void>;
  claim(request?: Partial<DueRequest>): Promise<TimeoutRow[]>;
  /** Claims the first timeout. Returns it with the token of its owner. */
  claimOne(request?: Partial<DueRequest>): Promise<TimeoutRow & { owner: Owner; leaseUntil: Instant }>;
  load(id: TimeoutId): Promise<TimeoutRow | null>;
  all(): Promise<TimeoutRow[]>;
  close(): Promise<void>;
}

export interface TimeoutCase {
  readonly name: string;
  run(bed: TimeoutBed): Promise<void>;
  /** Does not apply to a store without leases. */
  readonly leases?: true;
  skip?(opened: OpenedTimeoutStore): string | undefined;
  readonly timeout?: number;
  /** The cell of all its timeouts, in a store with several homes. Left out: they are spread. */
  readonly home?: Cell;
}

export const LEASE_LENGTH = 60_000;
const SEED = 20_260_102;

export async function openTimeoutBed(opened: OpenedTimeoutStore): Promise<TimeoutBed> {
  const { timeouts } = opened;
  const now = await opened.clock();
  const others: Pick<OpenedTimeoutStore, "timeouts" | "close">[] = [];
  let made = 0;
  const bed: TimeoutBed = {
    timeouts,
    opened,
    now,
    random: seededRandom(SEED),
    async handles(count) {
      while (opened.another && others.length < count - 1) others.push(await opened.another());
      return Array.from({ length: count }, (_, index) => others[index - 1]?.timeouts ?? timeouts);
    },
    timeout(sketch = {}) {
      made += 1;
      const id = `timeout-${String(made).padStart(6, "0")}`;
      return { id, destination: "kit", dueAt: now, ...sketch };
    },
    async add(sketch) {
      const timeout = bed.timeout(sketch);
      await bed.addMany([timeout]);
      const row = await bed.load(timeout.id);
      assert(row, "what was inserted must be there");
      return row;
    },
    async addMany(added) {
      const answers = await timeouts.insert(added, { now });
      assert.deepEqual(
        answers,
        added.map(() => "created"),
      );
    },
    claim: (request) => timeouts.claimDue(dueRequest(bed, request)),
    async claimOne(request) {
      const rows = await bed.claim({ limit: 1, ...request });
      assert.equal(rows.length, 1, "a claim of one must give one timeout");
      const [row] = rows as [TimeoutRow];
      assert(row.owner !== null && row.leaseUntil !== null, "what is claimed is leased");
      return { ...row, owner: row.owner, leaseUntil: row.leaseUntil };
    },
    async load(id) {
      return (await bed.all()).find((row) => row.id === id) ?? null;
    },
    all: () => timeouts.list({}, null, 1_000),
    async close() {
      for (const other of others) await other.close();
    },
  };
  return bed;
}

let owners = 0;

export function dueRequest(bed: Pick<TimeoutBed, "now">, request: Partial<DueRequest> = {}): DueRequest {
  owners += 1;
  const now = request.now ?? bed.now;
  return { now, leaseUntil: now + LEASE_LENGTH, owner: `owner-${owners}`, ...request };
}
