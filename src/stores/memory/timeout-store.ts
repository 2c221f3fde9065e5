import { refuse } from "../../core/errors.ts";
import { checkTimeout } from "../../core/timeout/timeout.ts";
import type { TimeoutStore } from "../../ports/timeouts.ts";
import { checkBatch, checkLimit } from "../check-batch.ts";
import { checkExtended, checkMoves, checkReleased } from "../check-instants.ts";
import { claimLimit } from "../claim-request.ts";
import { HintBatch, type Listeners } from "./hints.ts";
import type { TimeoutTable } from "./timeout-table.ts";

/** The model of the timeout port. */
export function createTimeoutStore(
  table: TimeoutTable,
  listeners: Listeners,
  assertOpen: () => void,
): TimeoutStore {
  return {
    leases: true,
    ...createWrites(table, listeners, assertOpen),
    async claimDue(request) {
      assertOpen();
      return table.claim(request, claimLimit(request));
    },
    async reap({ now }) {
      assertOpen();
      return table.reap(now);
    },
    async cancel(which, { now, tx }) {
      assertOpen();
      refuseTx(tx);
      return table.cancel(which, now);
    },
    async load(ids) {
      assertOpen();
      checkBatch(ids, "ids");
      return ids.map((id) => table.load(id));
    },
    async calendar(request) {
      assertOpen();
      checkLimit(request.limit);
      return table.calendar(request);
    },
    async list(filter, after, limit) {
      assertOpen();
      checkLimit(limit);
      return table.list(filter, after, limit);
    },
    async nextDueAt(destinations) {
      assertOpen();
      return table.nextDueAt(destinations);
    },
    async count({ now, tenant }) {
      assertOpen();
      return table.count(now, tenant);
    },
  };
}

/** The calls that take many items, answer for each, and send a hint for the first that is due. */
function createWrites(
  table: TimeoutTable,
  listeners: Listeners,
  assertOpen: () => void,
): Pick<TimeoutStore, "insert" | "remove" | "release" | "extend" | "requeue" | "reschedule"> {
  const each = <Item, Answer>(
    items: readonly Item[],
    field: string,
    work: (item: Item, hints: HintBatch) => Answer,
  ): Answer[] => {
    assertOpen();
    checkBatch(items, field);
    const hints = new HintBatch();
    const answers = items.map((item) => work(item, hints));
    listeners.notify(hints);
    return answers;
  };
  return {
    async insert(timeouts, { now, tx }) {
      refuseTx(tx);
      for (const timeout of timeouts) checkTimeout(timeout);
      return each(timeouts, "timeouts", (timeout, hints) => {
        const answer = table.insert(timeout);
        if (answer === "created") hints.timeout(timeout.dueAt, now);
        return answer;
      });
    },
    remove: async (leased, { now }) => each(leased, "leased", (one) => table.remove(one, now)),
    async release(released, { now }) {
      checkReleased(released);
      return each(released, "released", (one, hints) => {
        const answer = table.release(one, now);
        if (answer === "ok" && !one.isDead) hints.timeout(one.dueAt ?? now, now);
        return answer;
      });
    },
    async extend(extended, { now }) {
      checkExtended(extended);
      return each(extended, "extended", (one) => table.extend(one, now));
    },
    async requeue(ids, { now }) {
      const requeued = each(ids, "ids", (id, hints) => {
        hints.timeout(now, now);
        return table.requeue(id, now);
      });
      return requeued.filter(Boolean).length;
    },
    async reschedule(moves, { now }) {
      checkMoves(moves);
      const moved = each(moves, "moves", (move, hints) => {
        hints.timeout(move.to, now);
        return table.reschedule(move);
      });
      return moved.filter(Boolean).length;
    },
  };
}

/** A timeout that stays after the rollback of its transaction would be a surprise. */
function refuseTx(tx: unknown): void {
  if (tx === undefined) return;
  throw refuse(
    "invalid_option",
    "options.tx",
    typeof tx,
    "the memory store has no transactions to join: leave it out",
  );
}
