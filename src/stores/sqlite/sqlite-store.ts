import { reachOf } from "../../ports/capabilities.ts";
import type { Store } from "../../ports/store.ts";
import type { System } from "../../ports/system.ts";
import { checkUnits } from "../check-batch.ts";
import { textOfUnit } from "../sql/batches.ts";
import type { Binding, SqliteFile } from "./binding.ts";
import { writeUnits } from "./commit.ts";
import { diagnoseFile } from "./diagnose.ts";
import { FileClock } from "./file-clock.ts";
import { HintChannel } from "./hints.ts";
import { createInspector } from "./inspector.ts";
import { createJobStore } from "./job-store.ts";
import { look } from "./look.ts";
import { type FileOptions, openFile } from "./open-file.ts";
import { createRecordStore } from "./record-store.ts";
import { createSearchIndex } from "./search-index.ts";
import { createTimeoutStore } from "./timeout-store.ts";
import { Transactions } from "./transactions.ts";

export type SqliteStoreOptions = FileOptions & {
  readonly system: System;
  /** The copy of SQLite for a `path`. Default: see `defaultBinding`. */
  readonly binding?: Binding;
};

const files = new WeakMap<Store, SqliteFile>();

/** The file of a store. Undefined for a store of another kind. */
export function fileOf(store: Store): SqliteFile | undefined {
  return files.get(store);
}

/**
 * Opens a store in a SQLite file, and applies pending migrations. Several processes of one machine may share the
 * file. SQLite works in the calling thread: calls are short, and long ones are split. Another thread syncs commits to
 * the disk.
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const { system } = options;
  const connection = await openFile(options, system, options.binding);
  const clock = new FileClock(connection, system);
  const channel = new HintChannel(connection, system);
  const transactions = new Transactions(
    connection,
    channel,
    "database" in options ? options.database : undefined,
  );
  const store: Store = {
    capabilities: {
      name: "sqlite",
      durable: "ack",
      tx: true,
      hints: "push",
      inProcess: true,
      ...reachOf(1),
    },
    jobs: createJobStore(connection, transactions),
    records: createRecordStore(connection),
    timeouts: createTimeoutStore(connection, transactions),
    inspect: createInspector(connection),
    search: createSearchIndex(connection),
    clock: () => clock.now(),
    look: async (request) => look(connection, request),
    async commit(units, options) {
      checkUnits(units, options.now);
      return transactions.run(units, textOfUnit, options, (session, batch, hints) =>
        writeUnits(session, batch, options.now, hints),
      );
    },
    async listen(onHint) {
      connection.assertOpen();
      return channel.listen(onHint);
    },
    diagnose: () => diagnoseFile(connection),
    async close() {
      channel.close();
      clock.leave();
      await connection.close();
    },
  };
  files.set(store, connection);
  return store;
}
