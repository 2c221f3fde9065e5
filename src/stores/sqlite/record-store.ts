import { lastDownFrom, namesOf } from "../../core/tenant/tenant-name.ts";
import type { RecordStore } from "../../ports/store.ts";
import { checkBatch, checkLimit } from "../check-batch.ts";
import { noText } from "../sql/batches.ts";
import { decodeRecord } from "../sql/row-codec.ts";
import type { Connection } from "./connection.ts";
import { LIST_RECORDS, LIST_RECORDS_BACK, LOAD_RECORD } from "./statements.ts";

export function createRecordStore(connection: Connection): RecordStore {
  return {
    async load(keys) {
      connection.assertOpen();
      checkBatch(keys, "keys");
      return connection.inBatches(keys, noText, (batch) =>
        connection.read((session) =>
          batch.map((key) => {
            const row = session.get(LOAD_RECORD, key);
            return row ? decodeRecord(row) : null;
          }),
        ),
      );
    },
    async list(kind, after, limit, order) {
      checkLimit(limit);
      if (order === "desc") {
        const range = [after ?? namesOf(undefined).to, lastDownFrom(after)];
        return connection.read((session) =>
          session.all(LIST_RECORDS_BACK, [kind, ...range, limit]).map(decodeRecord),
        );
      }
      const from = after ?? namesOf(undefined).from;
      return connection.read((session) =>
        session.all(LIST_RECORDS, [kind, from, from, limit]).map(decodeRecord),
      );
    },
  };
}
