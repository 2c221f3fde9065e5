import type { GateLimit } from "../../core/limit/limit.ts";
import type { Instant } from "../../core/time.ts";
import { type RecordRow, START_KIND, type Unit } from "../../ports/store.ts";
import { ADMITTED_AT_ONCE } from "../consequences.ts";

/** A worker that was not heard of for so long when its record is due is gone. */
const SILENT_FOR = 10_000;

/** What becomes of a record that is due, committed under the version that was handed out; undefined for nothing. */
type RecordJudge = (record: RecordRow, now: Instant) => Unit | undefined;

/** By kind; a kind that ends in a space stands for all that begin so. */
const JUDGES: Readonly<Record<string, RecordJudge>> = {
  worker: (record, now) =>
    (record.body as { seenAt: number }).seenAt + SILENT_FOR < now ? forgotten(record) : undefined,
  saga: forgotten,
  reply: forgotten,
  [START_KIND]: startOver,
};

export function judgeRecord(record: RecordRow, now: Instant): Unit | undefined {
  const [kind] = record.key;
  const judge = JUDGES[kind] ?? JUDGES[kind.slice(0, kind.indexOf(" ") + 1)];
  return judge?.(record, now);
}

function forgotten({ key, version }: RecordRow): Unit {
  return { when: [{ record: key, version }], effects: [{ delete: key }] };
}

/** A start that no longer counts against its rate: another one may follow. */
function startOver({ key, version, body }: RecordRow): Unit {
  const { gate, limit } = body as unknown as { readonly gate: string; readonly limit: GateLimit };
  return {
    when: [{ record: key, version }],
    effects: [{ delete: key }, { admit: gate, count: ADMITTED_AT_ONCE, limit }],
  };
}
