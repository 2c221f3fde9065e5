import type { Json } from "../../core/schema.ts";
import { lastDownFrom, namesOf } from "../../core/tenant/tenant-name.ts";
import type { RecordRow, RecordStore } from "../../ports/store.ts";
import { checkBatch, checkLimit } from "../check-batch.ts";
import { type Home, ITEMS_PER_CALL } from "./home.ts";

/** Lists begin here if they are given no cursor. */
export const FIRST = namesOf(undefined).from;

type Values = [version: number, wakeAt: number | null, body: string];

export function readRecord(kind: string, [key, version, wakeAt, body]: [string, ...Values]): RecordRow {
  return { key: [kind, key], version, wakeAt, body: JSON.parse(body) as Json };
}

export function createRecordStore(home: Home): RecordStore {
  return {
    async load(keys) {
      home.assertOpen();
      checkBatch(keys, "keys");
      const found: (RecordRow | null)[] = [];
      while (found.length < keys.length) {
        const batch = keys.slice(found.length, found.length + ITEMS_PER_CALL);
        const reader = await home.call("loadRecords", batch.flat());
        const rows = reader.read() as (Values | null)[];
        for (const [index, row] of rows.entries()) {
          const [kind, key] = batch[index] as [string, string];
          found.push(row && readRecord(kind, [key, ...row]));
        }
      }
      return found;
    },
    async list(kind, after, limit, order) {
      home.assertOpen();
      checkLimit(limit);
      const found: RecordRow[] = [];
      const last = order === "desc" ? lastDownFrom(after) : false;
      for (let from = last === false ? (after ?? FIRST) : (after ?? false); found.length < limit; ) {
        const most = Math.min(limit - found.length, ITEMS_PER_CALL);
        const reader = await home.call("listRecords", [kind, from, most, last]);
        const rows = reader.read() as [string, ...Values][];
        for (const row of rows) found.push(readRecord(kind, row));
        if (rows.length < most) break;
        from = rows.at(-1)?.[0] as string;
      }
      return found;
    },
  };
}
