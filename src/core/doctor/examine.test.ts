import { describe, expect, it } from "vitest";
import type {
  DoctorFacts,
  PostgresFacts,
  SqliteFacts,
  StoreFacts,
  WorkerFacts,
  WorkFacts,
} from "./doctor-facts.ts";
import { DOCTOR_RULES, type DoctorCode } from "./doctor-rules.ts";
import { examine } from "./examine.ts";

const NOW = 1_900_000_000_000;
const GIGABYTE = 1_000_000_000;

const sqlite: SqliteFacts = {
  file: "/data/jobs.db",
  version: "3.53.4",
  journalMode: "wal",
  synchronous: 1,
  bytes: GIGABYTE,
  unusedBytes: 1_000,
  logBytes: 1_000_000,
  mode: 0o600,
  diskFree: 50 * GIGABYTE,
  diskSize: 100 * GIGABYTE,
  isNetworkDisk: false,
};
const postgres: PostgresFacts = {
  version: "18.1",
  settings: { fsync: "on", full_page_writes: "on", synchronous_commit: "on" },
  autovacuum: "on",
  hasPooler: false,
  connections: 12,
  mostConnections: 100,
  bytes: GIGABYTE,
  tables: [{ name: "jobs", liveRows: 1_000, deadRows: 50_000 }],
};
const diagnosis = { writeProblem: null, schemaVersion: 8, newestVersion: 8 };
const store: StoreFacts = { name: "sqlite", durable: "ack", answerTime: 2, clockOffset: 3, diagnosis: null };
const worker: WorkerFacts = {
  id: "w-1",
  isSilent: false,
  isStopping: false,
  halted: null,
  problem: null,
  blocked: null,
  brokenSandboxes: [],
};
const work: WorkFacts = { now: NOW, workers: [worker], unattended: [], paused: [], maintenanceSince: null };

const withSqlite = (change: Partial<SqliteFacts> = {}): DoctorFacts => ({
  openProblem: null,
  process: { nodeVersion: "24.21.0", loadedSqlite: ["/a/better-sqlite3.node"], copies: [] },
  store: { ...store, diagnosis: { ...diagnosis, sqlite: { ...sqlite, ...change } } },
  work,
});
const withPostgres = (change: Partial<PostgresFacts> = {}): DoctorFacts => ({
  ...withSqlite(),
  store: { ...store, name: "postgres", diagnosis: { ...diagnosis, postgres: { ...postgres, ...change } } },
});
const withStore = (change: Partial<StoreFacts>): DoctorFacts => ({
  ...withSqlite(),
  store: { ...store, diagnosis: { ...diagnosis, sqlite }, ...change },
});
const withWork = (change: Partial<WorkFacts>): DoctorFacts => ({
  ...withSqlite(),
  work: { ...work, ...change },
});
const withWorker = (change: Partial<WorkerFacts>) => withWork({ workers: [{ ...worker, ...change }] });
const withProcess = (change: Partial<NonNullable<DoctorFacts["process"]>>): DoctorFacts => {
  const healthy = withSqlite();
  return { ...healthy, process: { ...(healthy.process as NonNullable<DoctorFacts["process"]>), ...change } };
};
const copy = (name: string, version: string, path: string) => ({ name, version, path });

type Row = readonly [code: DoctorCode, level: string, facts: DoctorFacts, says: RegExp];

const TABLE: readonly Row[] = [
  [
    "store_unreachable",
    "error",
    { openProblem: "ECONNREFUSED", process: null, store: null, work: null },
    /no answer: ECONNREFUSED/,
  ],
  ["store_slow", "warning", withStore({ answerTime: 350 }), /took 350 ms/],
  [
    "store_read_only",
    "error",
    withStore({ diagnosis: { ...diagnosis, writeProblem: "this server is a read-only replica" } }),
    /cannot be written: this server is a read-only replica/,
  ],
  ["store_not_durable", "warning", withStore({ durable: "none", name: "memory" }), /gone when it ends/],
  [
    "schema_version",
    "error",
    withStore({ diagnosis: { ...diagnosis, schemaVersion: 6 } }),
    /version 6; .* version 8/,
  ],
  ["clock_offset", "warning", withStore({ clockOffset: 90_000 }), /1m 30s behind the clock of the store/],
  ["clock_offset", "warning", withStore({ clockOffset: -2_000 }), /2s ahead of the clock of the store/],
  ["wal_off", "error", withSqlite({ journalMode: "delete" }), /journal_mode delete/],
  ["wal_off", "error", withSqlite({ synchronous: 0 }), /synchronous 0/],
  ["wal_large", "warning", withSqlite({ logBytes: 2 * GIGABYTE }), /WAL of .* has 2\.0 GB/],
  ["network_disk", "error", withSqlite({ isNetworkDisk: true }), /network file system/],
  ["disk_low", "warning", withSqlite({ diskFree: 5 * GIGABYTE }), /5\.0 GB free \(5 %\)/],
  ["disk_low", "error", withSqlite({ diskFree: 150_000_000 }), /150 MB free \(0 %\)/],
  ["file_open_to_others", "warning", withSqlite({ mode: 0o644 }), /can read .* \(mode 644\)/],
  ["file_open_to_others", "warning", withSqlite({ mode: 0o666 }), /can change .* \(mode 666\)/],
  [
    "not_crash_safe",
    "error",
    withPostgres({ settings: { fsync: "off", full_page_writes: "on", synchronous_commit: "off" } }),
    /fsync = off and synchronous_commit = off/,
  ],
  ["pooler", "warning", withPostgres({ hasPooler: true }), /pooler is between/],
  ["connections_low", "warning", withPostgres({ connections: 85 }), /85 of 100 connections/],
  ["autovacuum_off", "warning", withPostgres({ autovacuum: "off" }), /autovacuum is off/],
  [
    "bloat",
    "warning",
    withPostgres({ tables: [{ name: "jobs", liveRows: 5, deadRows: 250_000 }] }),
    /jobs \(250,000 rows\)/,
  ],
  ["bloat", "note", withSqlite({ unusedBytes: 0.8 * GIGABYTE }), /800 MB of the 1\.0 GB/],
  ["node_version", "error", withProcess({ nodeVersion: "22.3.0" }), /needs Node 22\.14/],
  ["node_version", "note", withProcess({ nodeVersion: "25.1.0" }), /odd version/],
  [
    "second_sqlite",
    "warning",
    withProcess({ loadedSqlite: ["/a.node", "node:sqlite"] }),
    /2 SQLite libraries/,
  ],
  [
    "second_sqlite",
    "warning",
    withProcess({ copies: [copy("better-sqlite3", "13.0.3", "/a"), copy("better-sqlite3", "12.0.0", "/b")] }),
    /2 copies of better-sqlite3 \(13\.0\.3, 12\.0\.0\)/,
  ],
  [
    "second_opentelemetry",
    "warning",
    withProcess({
      copies: [copy("@opentelemetry/api", "1.10.0", "/a"), copy("@opentelemetry/api", "1.9.0", "/b")],
    }),
    /2 copies of @opentelemetry\/api/,
  ],
  ["maintenance_on", "warning", withWork({ maintenanceSince: NOW - 3_600_000 }), /on for 1h/],
  [
    "queue_paused",
    "note",
    withWork({ paused: [{ queue: "mail", since: NOW - 60_000, waiting: 0 }] }),
    /"mail" for 1m\.$/,
  ],
  [
    "queue_paused",
    "warning",
    withWork({ paused: [{ queue: "mail", since: NOW - 60_000, waiting: 3 }] }),
    /"mail" for 1m, with 3 ready jobs/,
  ],
  [
    "queue_without_worker",
    "error",
    withWork({ unattended: [{ queue: "mial", waiting: 3, hasMore: false, didYouMean: "mail" }] }),
    /"mial" \(3 jobs, did you mean "mail"\?\)/,
  ],
  ["no_worker", "note", withWork({ workers: [] }), /No worker is alive/],
  ["worker_lost", "warning", withWorker({ isSilent: true }), /stopped beating .*: w-1/],
  ["worker_stuck", "error", withWorker({ halted: "stuck" }), /ignore their signal: w-1/],
  ["worker_failing", "error", withWorker({ halted: "failing", problem: "no right" }), /w-1 \(no right\)/],
  ["worker_blocked", "warning", withWorker({ blocked: { at: NOW - 1_000, gap: 4_000 } }), /w-1 for 4s/],
  ["sandbox_broken", "error", withWorker({ brokenSandboxes: ["pdf.render"] }), /sandbox of "pdf.render"/],
];

describe("the rules of the doctor", () => {
  it.each(TABLE)("find %s as %s", (code, level, facts, says) => {
    const { findings } = examine(facts);
    const found = findings.find((finding) => finding.code === code);
    expect(found).toMatchObject({ level, link: `docs/guides/operations.md#${code}` });
    expect(found?.sentence).toMatch(says);
    expect(found?.action).toMatch(/\.$/);
  });

  it("find nothing on a healthy store", () => {
    expect(examine(withSqlite()).findings).toEqual([]);
    expect(examine(withPostgres()).findings).toEqual([]);
    expect(examine(withPostgres()).passed.map(({ code }) => code)).toContain("pooler");
  });

  it("are skipped where their facts are unknown", () => {
    const unknown = { openProblem: null, process: null, store: null, work: null };
    expect(examine(unknown)).toEqual({ findings: [], passed: [] });
    const { findings, passed } = examine(withPostgres({ hasPooler: null }));
    expect([...findings, ...passed].map(({ code }) => code)).not.toContain("pooler");
  });

  it("name errors before warnings and notes", () => {
    const facts = withWork({
      maintenanceSince: NOW,
      paused: [{ queue: "mail", since: NOW, waiting: 0 }],
      unattended: [{ queue: "mail", waiting: 1, hasMore: true, didYouMean: null }],
    });
    expect(examine(facts).findings.map(({ level }) => level)).toEqual(["error", "warning", "note"]);
  });

  it("forget a blocked loop after ten minutes, and problems of workers that are gone", () => {
    const old = withWorker({ blocked: { at: NOW - 11 * 60_000, gap: 4_000 } });
    expect(examine(old).findings).toEqual([]);
    const gone = withWorker({ isSilent: true, isStopping: true, halted: "stuck", brokenSandboxes: ["a"] });
    expect(examine(gone).findings.map(({ code }) => code)).toEqual(["no_worker"]);
  });

  it("have a row in this table each", () => {
    const tested = new Set(TABLE.map(([code]) => code));
    expect(Object.keys(DOCTOR_RULES).filter((code) => !tested.has(code as DoctorCode))).toEqual([]);
  });
});
