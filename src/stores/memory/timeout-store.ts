import { checkTimeout } from "../../core/timeout/timeout.ts";
import type { TimeoutStore } from "../../ports/timeouts.ts";
import { claimLimit } from "../claim-request.ts";
import { HintBatch, type Listeners } from "./hints.ts";
import { checkBatch, checkLimit } from "./limits.ts";
import type { TimeoutTable } from "./timeout-table.ts";

/** The model of the timeout port. */
export function createTimeoutStore(
  table: TimeoutTable,
  listeners: Listeners,
  assertOpen: () => void,
): TimeoutStore {
  const each = <Item, Answer>(items: readonly Item[], field: string, work: (item: Item) => Answer) => {
    assertOpen();
    checkBatch(items, field);
    return items.map(work);
  };
  return {
    leases: true,
    async insert(timeouts, { now }) {
      checkBatch(timeouts, "timeouts");
      for (const timeout of timeouts) checkTimeout(timeout);
      const hints = new HintBatch();
      const answers = each(timeouts, "timeouts", (timeout) => {
        const answer = table.insert(timeout);
        if (answer === "created") hints.timeout(timeout.dueAt, now);
        return answer;
      });
      listeners.tell(hints);
      return answers;
    },
    async claimDue(request) {
      assertOpen();
      return table.claim(request, claimLimit(request));
    },
    remove: async (held, { now }) => each(held, "held", (one) => table.remove(one, now)),
    async release(released, { now }) {
      const hints = new HintBatch();
      const answers = each(released, "released", (one) => {
        const answer = table.release(one, now);
        if (answer === "ok" && !one.isDead) hints.timeout(one.dueAt ?? now, now);
        return answer;
      });
      listeners.tell(hints);
      return answers;
    },
    extend: async (extended, { now }) => each(extended, "extended", (one) => table.extend(one, now)),
    async reap({ now }) {
      assertOpen();
      return table.reap(now);
    },
    async cancel(which, { now }) {
      assertOpen();
      return table.cancel(which, now);
    },
    async requeue(ids, { now }) {
      const hints = new HintBatch();
      const requeued = each(ids, "ids", (id) => table.requeue(id, now)).filter(Boolean).length;
      if (requeued > 0) hints.timeout(now, now);
      listeners.tell(hints);
      return requeued;
    },
    async reschedule(moves, { now }) {
      const hints = new HintBatch();
      const moved = each(moves, "moves", (move) => {
        const isMoved = table.reschedule(move);
        if (isMoved) hints.timeout(move.to, now);
        return isMoved;
      });
      listeners.tell(hints);
      return moved.filter(Boolean).length;
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
    async count({ now }) {
      assertOpen();
      return table.count(now);
    },
  };
}
