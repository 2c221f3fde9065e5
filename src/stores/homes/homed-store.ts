import { refuse } from "../../core/errors.ts";
import { CELLS, type Home, homeOf, SETTINGS_CELL } from "../../core/home/cell.ts";
import { cellOfRecord, isSettingKind } from "../../core/home/cell-of-row.ts";
import type { IdSource } from "../../core/ids.ts";
import { reachOf } from "../../ports/capabilities.ts";
import type { Hint, RecordStore, Store } from "../../ports/store.ts";
import { checkBatch, checkLimit } from "../check-batch.ts";
import { compareText, mergeSorted, perHome } from "./fan-out.ts";
import type { HomeStore } from "./home-store.ts";
import { createHomedInspector } from "./homed-inspector.ts";
import { createHomedJobs } from "./homed-jobs.ts";
import { createHomedTimeouts } from "./homed-timeouts.ts";
import { Journal } from "./journal.ts";
import { lookAtHomes } from "./look.ts";
import { Outbox } from "./outbox.ts";
import { Visits } from "./visits.ts";
import { Wakes } from "./wakes.ts";

export interface HomedStoreOptions {
  /** Ids of messages between homes, in the cell that is asked for (`createHomedIdSource`). */
  readonly nextId: IdSource;
  /** A home did not answer, and the call went on without it. */
  readonly onFailed?: (home: Home, error: unknown) => void;
}

/**
 * A store with several homes, made of stores with one home each (ADR 33). It sends every row to its home, merges
 * lists, and carries what crosses from one home to another. The first home has the settings and the clock.
 */
export function createHomedStore(homes: readonly HomeStore[], options: HomedStoreOptions): Store {
  const [first] = homes;
  if (!first || homes.length > CELLS)
    throw refuse("invalid_option", "homes", homes.length, `use 1 to ${CELLS} homes`);
  const { nextId, onFailed = () => {} } = options;
  const visits = new Visits(homes.length);
  const wakes = new Wakes(homes.length);
  const written = homes.map((home, number) => withWrites(home, () => wakes.wrote(number)));
  const outbox = new Outbox(written, nextId, onFailed);
  const journal = new Journal(homes, () => first.clock(), onFailed);
  return {
    capabilities: { ...first.capabilities, tx: false, ...reachOf(homes.length) },
    jobs: createHomedJobs(homes, outbox, visits, wakes, onFailed),
    records: createHomedRecords(homes),
    timeouts: createHomedTimeouts(homes, onFailed),
    inspect: createHomedInspector(homes, journal),
    clock: () => first.clock(),
    look: (request) => lookAtHomes(homes, request, { visits, wakes }, onFailed),
    commit: (units, commitOptions) => outbox.commit(units, commitOptions),
    listen: (onHint) => listen(homes, visits, onHint),
    async close() {
      await Promise.all(homes.map((home) => home.close()));
    },
  };
}

/** Calls back before each commit. */
function withWrites(home: HomeStore, onWrite: () => void): HomeStore {
  return {
    ...home,
    commit(units, options) {
      onWrite();
      return home.commit(units, options);
    },
  };
}

function createHomedRecords(homes: readonly HomeStore[]): RecordStore {
  return {
    async load(keys) {
      checkBatch(keys, "keys");
      return perHome(
        keys,
        (key) => homeOf(cellOfRecord(key), homes.length),
        (home, own) => (homes[home] as HomeStore).records.load(own),
      );
    },
    async list(kind, after, limit, order) {
      checkLimit(limit);
      if (isSettingKind(kind)) {
        const { records } = homes[homeOf(SETTINGS_CELL, homes.length)] as HomeStore;
        return records.list(kind, after, limit, order);
      }
      const lists = await Promise.all(homes.map(({ records }) => records.list(kind, after, limit, order)));
      const sign = order === "desc" ? -1 : 1;
      return mergeSorted(lists, (a, b) => sign * compareText(a.key[1], b.key[1]), limit);
    },
  };
}

/** A home in which a queue is ready is visited first by the next claim. */
async function listen(
  homes: readonly HomeStore[],
  visits: Visits,
  onHint: (hint: Hint) => void,
): Promise<AsyncDisposable> {
  const listeners = await Promise.all(
    homes.map((store, home) =>
      store.listen((hint) => {
        if ("ready" in hint) visits.ready(hint.ready, home);
        if ("missed" in hint) visits.missed();
        onHint(hint);
      }),
    ),
  );
  visits.listeners += 1;
  return {
    async [Symbol.asyncDispose]() {
      visits.listeners -= 1;
      await Promise.all(listeners.map((listener) => listener[Symbol.asyncDispose]()));
    },
  };
}
