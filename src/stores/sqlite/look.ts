import { earlier, type Instant } from "../../core/time.ts";
import type { Looked, LookRequest } from "../../ports/look.ts";
import { checkLook } from "../check-batch.ts";
import { decodeRecord } from "../sql/row-codec.ts";
import type { Connection } from "./connection.ts";
import { LOAD_RECORD, NEXT_WAKE, PAUSED, PEEK } from "./statements.ts";
import { NEXT_DUE_OF } from "./timeout-statements.ts";

/** Reads what a process at rest asks for, in one read. */
export function look(connection: Connection, request: LookRequest): Promise<Looked> {
  checkLook(request);
  const { queues, destinations, records } = request;
  return connection.read((session) => ({
    nextWakeAt: session.get(NEXT_WAKE)?.[0] as Instant | null,
    ready: queues.filter((queue) => session.get(PEEK, [queue, 0]) && !session.get(PAUSED, [queue])),
    nextDueAt: destinations
      .map((name) => session.get(NEXT_DUE_OF, [name, name])?.[0] as Instant | null)
      .reduce(earlier, null),
    versions: records.map((key) => {
      const row = session.get(LOAD_RECORD, key);
      return row ? decodeRecord(row).version : 0;
    }),
  }));
}
