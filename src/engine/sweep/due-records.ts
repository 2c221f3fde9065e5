import type { KeyLimit } from "../../core/limit/limit.ts";
import type { Instant } from "../../core/time.ts";
import { type Effect, type RecordRow, START_KIND, type Unit } from "../../ports/store.ts";
import { CALENDARS } from "../calendars/calendar-cache.ts";
import { settleCalendars } from "../calendars/calendars.ts";
import { commitUnits } from "../commit/commit.ts";
import { recordKind } from "../commit/record-kind.ts";
import { ADMITTED_AT_ONCE } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { AUDIT } from "../events/audit-log.ts";
import { workerEvent } from "../events/recording-rules.ts";
import { MAINTENANCE } from "../queues/maintenance-record.ts";
import { DIRECTIVES, silenceOf } from "../remote/remote-workers.ts";
import { REPLIES, SAGAS } from "../sagas/saga-addresses.ts";
import { WORKERS } from "../worker/worker-record.ts";

/** Acts on due records of one kind. */
export type RecordHandler = (records: readonly RecordRow[], now: Instant) => Promise<void>;

/** Handlers of due records by kind. A record of a kind without a handler stays. */
export type RecordHandlers = Readonly<Record<string, RecordHandler>>;

/** Starts that count against a rate limit. The store writes them. */
const STARTS = recordKind<{ readonly limitKey: string; readonly limit: KeyLimit }>(START_KIND);

/** A worker is lost if its record is due and its last beat is older than this. */
const SILENT_FOR = 10_000;

/**
 * Deletes records that are no longer needed: silent workers, completed sagas, replies that no caller fetched, old audit
 * entries, old directives, and maintenance that is over. Resolves again what changed calendars have left.
 */
export function forgettingHandlers(
  context: Pick<EngineContext, "store" | "clock" | "recorder" | "bus" | "calendars">,
): RecordHandlers {
  const forget = async (records: readonly RecordRow[]) => {
    await commitUnits(
      context,
      records.map(({ key, version }) => forgetting(key, version)),
    );
  };
  return {
    [CALENDARS.kind]: (records) => settleCalendars(context, records),
    [WORKERS.kind]: (records, now) => forgetWorkers(context, records, now),
    [SAGAS.kind]: forget,
    [REPLIES.kind]: forget,
    [AUDIT.kind]: forget,
    [DIRECTIVES.kind]: forget,
    [MAINTENANCE.kind]: forget,
  };
}

/** Deletes the record only under the version that was read: a record that changed meanwhile is in use again. */
function forgetting(key: RecordRow["key"], version: number, more: readonly Effect[] = []): Unit {
  return { when: [{ record: key, version }], effects: [{ delete: key }, ...more] };
}

async function forgetWorkers(
  context: Pick<EngineContext, "store" | "clock" | "recorder" | "bus">,
  records: readonly RecordRow[],
  now: Instant,
): Promise<void> {
  const silent = records.filter((row) => WORKERS.read(row).body.seenAt + SILENT_FOR < now);
  const ends = silent.map((record) => silenceOf(record, now));
  const units = silent.map(({ key, version }, index) =>
    forgetting(key, version, context.recorder.kept(workerEvent(ends[index] as (typeof ends)[number]))),
  );
  const outcomes = await commitUnits(context, units);
  for (const [index, end] of ends.entries()) if (outcomes[index]?.ok) context.bus.emit(end);
}

/**
 * Deletes starts that no longer count against their rate, and admits the next jobs. One unit per limit. No guard is needed,
 * because only the attempt that a start belongs to writes it.
 */
export function startHandlers(context: Pick<EngineContext, "store" | "clock">): RecordHandlers {
  return {
    async [START_KIND](records) {
      const byLimitKey = Map.groupBy(records.map(STARTS.read), ({ body }) => body.limitKey);
      const units = Array.from(byLimitKey, ([limitKey, starts]): Unit => {
        const limit = starts[0]?.body.limit as KeyLimit;
        const deletes = starts.map(({ name }) => STARTS.remove(name));
        return { effects: [...deletes, { admit: limitKey, count: ADMITTED_AT_ONCE, limit }] };
      });
      await commitUnits(context, units);
    },
  };
}
