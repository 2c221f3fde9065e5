import type { TimeoutId, TimeoutRow } from "../../../src/core/timeout/timeout.ts";
import type { Store } from "../../../src/ports/store.ts";
import type { Revoked, TimeoutStore } from "../../../src/ports/timeouts.ts";
import { WorldChecker } from "../world-checker.ts";

/** What is known about one timeout from outside. */
interface Ledger {
  isAcknowledged: boolean;
  /** A cancel or a replacement was asked for, whatever came of it. */
  isTakenBack: boolean;
  /** A cancel was confirmed before anybody held it. */
  isCancelled: boolean;
  isHandled: boolean;
  isRemoved: boolean;
  failures: number;
  lease: { readonly owner: string; leaseUntil: number } | undefined;
}

/**
 * Watches the timeout store and the handlers from outside, and knows what must never happen. It asks the engine nothing,
 * and goes by true time.
 */
export class TimeoutChecker extends WorldChecker {
  readonly #ledgers = new Map<TimeoutId, Ledger>();
  handled = 0;

  #of(id: TimeoutId): Ledger {
    let ledger = this.#ledgers.get(id);
    if (!ledger) {
      const flags = { isAcknowledged: false, isTakenBack: false, isCancelled: false, isHandled: false };
      ledger = { ...flags, isRemoved: false, failures: 0, lease: undefined };
      this.#ledgers.set(id, ledger);
    }
    return ledger;
  }

  // What callers asked for, and what they heard.

  inserted(id: TimeoutId): void {
    this.#of(id).isAcknowledged = true;
  }

  takesBack(id: TimeoutId): void {
    this.#of(id).isTakenBack = true;
  }

  cancelled(id: TimeoutId, { pending }: Revoked): void {
    if (pending > 0) this.#of(id).isCancelled = true;
  }

  // What handlers saw.

  entered(id: TimeoutId, dueAt: number): void {
    const { isCancelled, isRemoved } = this.#of(id);
    this.trace.add("handler", `enters ${id}`);
    if (this.now() < dueAt)
      this.report("none fires early", `${id} came ${dueAt - this.now()} ms before it was due`);
    if (isCancelled) this.report("none is handled after a confirmed cancel", id);
    if (isRemoved) this.report("none is handled after it was removed", id);
  }

  ended(id: TimeoutId, isFailed: boolean): void {
    const ledger = this.#of(id);
    if (isFailed) ledger.failures += 1;
    else {
      ledger.isHandled = true;
      this.handled += 1;
    }
  }

  // What the store did.

  watch(store: Store): Store {
    const { timeouts } = store;
    const watched: TimeoutStore = {
      ...timeouts,
      claimDue: async (request) => {
        const rows = await timeouts.claimDue(request);
        for (const row of rows) this.#claimed(row);
        return rows;
      },
      extend: async (extended, options) => {
        const answers = await timeouts.extend(extended, options);
        for (const [index, { id, owner, leaseUntil }] of extended.entries()) {
          const { lease } = this.#of(id);
          if (answers[index] === "ok" && lease?.owner === owner) lease.leaseUntil = leaseUntil;
        }
        return answers;
      },
      release: async (released, options) => {
        const answers = await timeouts.release(released, options);
        for (const [index, { id }] of released.entries())
          if (answers[index] === "ok") this.#of(id).lease = undefined;
        return answers;
      },
      remove: async (held, options) => {
        const answers = await timeouts.remove(held, options);
        for (const [index, { id }] of held.entries()) if (answers[index] === "ok") this.#removed(id);
        return answers;
      },
    };
    return { ...store, timeouts: watched };
  }

  #claimed({ id, owner, leaseUntil }: TimeoutRow): void {
    const ledger = this.#of(id);
    if (ledger.lease && ledger.lease.leaseUntil > this.now())
      this.report("no two hold the same", `${id} was claimed while ${ledger.lease.owner} held it`);
    ledger.lease = { owner: owner as string, leaseUntil: leaseUntil as number };
  }

  #removed(id: TimeoutId): void {
    const ledger = this.#of(id);
    if (!ledger.isHandled) this.report("nothing is removed unhandled", id);
    ledger.isRemoved = true;
  }

  /** What must hold when everything has settled. */
  checkEnd(rows: readonly TimeoutRow[]): void {
    const left = new Map(rows.map((row) => [row.id, row]));
    for (const [id, ledger] of this.#ledgers) {
      const row = left.get(id);
      if (row && row.deadAt === null) this.report("everything settles", `${id} is still pending`);
      if (row?.deadAt && (row.tries !== 10 || ledger.failures < 10))
        this.report("dead after ten failures", `${id}: ${row.tries} tries, ${ledger.failures} failures`);
      if (!row && ledger.isAcknowledged && !ledger.isTakenBack && !ledger.isHandled)
        this.report("no timeout is lost", id);
    }
  }
}
