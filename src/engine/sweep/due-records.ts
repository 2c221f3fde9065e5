import type { KeyLimit } from "../../core/limit/limit.ts";
import type { Instant } from "../../core/time.ts";
import { type Effect, type RecordRow, START_KIND, type Unit } from "../../ports/store.ts";
import { ADMITTED_AT_ONCE } from "../commit/decision-effects.ts";
import type { EngineContext } from "../context.ts";
import { AUDIT } from "../events/audit-log.ts";
import type { WorkerDetail } from "../events/event-bus.ts";
import { workerEvent } from "../events/recording-rules.ts";
import { MAINTENANCE } from "../queues/maintenance-record.ts";
import { DIRECTIVE, silenceOf } from "../remote/remote-workers.ts";

/** Acts on due records of one kind; answers when the first of them wants to be looked at again, null for never. */
export type RecordHandler = (records: readonly RecordRow[], now: Instant) => Promise<Instant | null>;

/** Who judges due records, by their kind. A record of a kind that nobody judges stays. */
export type RecordHandlers = Readonly<Record<string, RecordHandler>>;

/** A worker that was not heard of for so long when its record is due is gone. */
const SILENT_FOR = 10_000;

/**
 * Records that are of no use any more: workers never heard of again, completed sagas, replies that nobody fetched, old
 * entries of the audit, and directives that no worker is left to hear.
 */
export function forgettingHandlers(parts: Pick<EngineContext, "store" | "recorder" | "bus">): RecordHandlers {
  const { store } = parts;
  const forget: RecordHandler = async (records, now) => {
    const units = records.map(
      ({ key, version }): Unit => ({ when: [{ record: key, version }], effects: [{ delete: key }] }),
    );
    if (units.length > 0) await store.commit(units, { now });
    return null;
  };
  return {
    worker: (records, now) => forgetWorkers(parts, records, now),
    saga: forget,
    reply: forget,
    [AUDIT]: forget,
    [DIRECTIVE]: forget,
    [MAINTENANCE]: forget,
  };
}

async function forgetWorkers(
  { store, recorder, bus }: Pick<EngineContext, "store" | "recorder" | "bus">,
  records: readonly RecordRow[],
  now: Instant,
): Promise<null> {
  const silent = records.filter(({ body }) => (body as { seenAt: number }).seenAt + SILENT_FOR < now);
  const ends = silent.map((record) => silenceOf(record, now));
  const units = silent.map(({ key, version }, index): Unit => {
    const told = recorder.kept(workerEvent(ends[index] as WorkerDetail));
    return { when: [{ record: key, version }], effects: [{ delete: key }, ...told] };
  });
  const outcomes = units.length > 0 ? await store.commit(units, { now }) : [];
  for (const [index, end] of ends.entries()) if (outcomes[index]?.ok) bus.emit(end);
  return null;
}

/**
 * Starts that no longer count against their rate: others may follow them. They are deleted without a guard: nobody else
 * writes them but the attempt that they belong to, and all of a limit make one unit.
 */
export function startHandlers({ store }: Pick<EngineContext, "store">): RecordHandlers {
  return {
    async [START_KIND](records, now) {
      const byLimitKey = Map.groupBy(records, ({ body }) => (body as { readonly limitKey: string }).limitKey);
      const units = Array.from(byLimitKey, ([limitKey, starts]): Unit => {
        const [{ body }] = starts as [RecordRow, ...RecordRow[]];
        const { limit } = body as unknown as { readonly limit: KeyLimit };
        const deletes = starts.map(({ key }): Effect => ({ delete: key }));
        return { effects: [...deletes, { admit: limitKey, count: ADMITTED_AT_ONCE, limit }] };
      });
      await store.commit(units, { now });
      return null;
    },
  };
}
