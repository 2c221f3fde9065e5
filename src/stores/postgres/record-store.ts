import { lastDownFrom, namesOf } from "../../core/tenant/tenant-name.ts";
import type { RecordKey, RecordRow, RecordStore } from "../../ports/store.ts";
import { checkBatch, checkLimit } from "../check-batch.ts";
import { decodeRecord } from "../sql/row-codec.ts";
import { textArray } from "./array-literal.ts";
import type { Runner } from "./session.ts";
import { LIST_RECORDS, LIST_RECORDS_BACK, LOAD_RECORDS } from "./statements.ts";

export function createRecordStore(runner: Runner, assertOpen: () => void): RecordStore {
  return {
    async load(keys) {
      // An empty list runs no statement, so a closed store would answer it.
      assertOpen();
      checkBatch(keys, "keys");
      return load(runner, keys);
    },
    async list(kind, after, limit, order) {
      checkLimit(limit);
      if (order === "desc") {
        const range = [after ?? namesOf(undefined).to, lastDownFrom(after)];
        return (await runner.run(LIST_RECORDS_BACK, [kind, ...range, limit])).map(decodeRecord);
      }
      return (await runner.run(LIST_RECORDS, [kind, after ?? namesOf(undefined).from, limit])).map(
        decodeRecord,
      );
    },
  };
}

/** One statement per kind: callers ask for many records of one kind. */
async function load(runner: Runner, keys: readonly RecordKey[]): Promise<(RecordRow | null)[]> {
  const kinds = new Map<string, string[]>();
  for (const [kind, key] of keys) kinds.set(kind, [...(kinds.get(kind) ?? []), key]);
  const found = new Map<string, Map<string, RecordRow>>();
  await Promise.all(
    Array.from(kinds, async ([kind, wanted]) => {
      const rows = await runner.run(LOAD_RECORDS, [kind, textArray(wanted, (key) => key)]);
      found.set(kind, new Map(rows.map((row) => [row[1] as string, decodeRecord(row)])));
    }),
  );
  return keys.map(([kind, key]) => found.get(kind)?.get(key) ?? null);
}
