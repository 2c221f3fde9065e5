import type { Instant } from "../time.ts";

/** A package that is installed, with the folder that it is in. */
export interface InstalledCopy {
  readonly name: string;
  readonly version: string;
  readonly path: string;
}

/** The process that has the store open. */
export interface ProcessFacts {
  readonly nodeVersion: string;
  /** SQLite libraries that this process has loaded: file names, or `node:sqlite`. */
  readonly loadedSqlite: readonly string[];
  /** Copies of better-sqlite3 and @opentelemetry/api that are installed below the folder of this process. */
  readonly copies: readonly InstalledCopy[];
}

/** The file of a SQLite store. */
export interface SqliteFacts {
  readonly file: string;
  readonly version: string;
  readonly journalMode: string;
  /** 0 is off, 1 normal, 2 full. */
  readonly synchronous: number;
  readonly bytes: number;
  /** Bytes of the file that hold nothing. */
  readonly unusedBytes: number;
  readonly logBytes: number;
  /** The permission bits of the file, such as 0o600; null where there are none. */
  readonly mode: number | null;
  /** Of the disk that the file is on. */
  readonly diskFree: number;
  readonly diskSize: number;
  readonly isNetworkDisk: boolean;
}

export interface TableFacts {
  readonly name: string;
  readonly liveRows: number;
  readonly deadRows: number;
}

export interface PostgresFacts {
  readonly version: string;
  /** Settings that decide whether an acknowledged write survives a crash. */
  readonly settings: Readonly<Record<"fsync" | "full_page_writes" | "synchronous_commit", string>>;
  readonly autovacuum: string;
  /** Something between this process and the server hands out connections; null: not known. */
  readonly hasPooler: boolean | null;
  readonly connections: number;
  readonly mostConnections: number;
  readonly bytes: number;
  readonly tables: readonly TableFacts[];
}

export interface SchemaVersions {
  /** 0 if there are no tables. */
  readonly schemaVersion: number;
  /** The newest version that this curfew knows. */
  readonly newestVersion: number;
}

/** What a store says about itself. */
export interface StoreDiagnosis extends SchemaVersions {
  /** Why nothing can be written; null if it can. */
  readonly writeProblem: string | null;
  readonly sqlite?: SqliteFacts;
  readonly postgres?: PostgresFacts;
}

export interface StoreFacts {
  readonly name: string;
  readonly durable: "ack" | "interval" | "none";
  /** Milliseconds until the store answered with its time. */
  readonly answerTime: number;
  /** The time of the store minus the time of this machine, in milliseconds. */
  readonly clockOffset: number;
  /** Null: this kind of store says nothing about itself. */
  readonly diagnosis: StoreDiagnosis | null;
}

/** A worker that has a problem. */
export interface WorkerFacts {
  readonly id: string;
  readonly isSilent: boolean;
  readonly isStopping: boolean;
  readonly halted: "stuck" | "failing" | null;
  readonly problem: string | null;
  readonly blocked: { readonly at: Instant; readonly gap: number } | null;
  /** Job types whose sandbox does not load. */
  readonly brokenSandboxes: readonly string[];
}

/** A queue with available jobs that no live worker takes. */
export interface UnattendedQueue {
  readonly queue: string;
  /** Available jobs, counted up to 1,000. */
  readonly waiting: number;
  /** There are more than `waiting`. */
  readonly hasMore: boolean;
  /** The most similar name of a queue that a live worker takes. */
  readonly didYouMean: string | null;
}

/** What workers and queues do now. */
export interface WorkFacts {
  readonly now: Instant;
  readonly workers: readonly WorkerFacts[];
  readonly unattended: readonly UnattendedQueue[];
  /** With the number of ready jobs, counted up to 1,000. */
  readonly paused: readonly { readonly queue: string; readonly since: Instant; readonly waiting: number }[];
  readonly maintenanceSince: Instant | null;
}

/** Everything that the rules of the doctor look at. What could not be read is null, and its rules are skipped. */
export interface DoctorFacts {
  /** Why the store cannot be opened; null if it is open. */
  readonly openProblem: string | null;
  /** The SQLite file that does not exist, if that is the problem. */
  readonly missingFile?: string | undefined;
  /** The versions of a store that answers and was not opened, because it lacks migrations. */
  readonly oldSchema?: SchemaVersions | undefined;
  readonly process: ProcessFacts | null;
  readonly store: StoreFacts | null;
  readonly work: WorkFacts | null;
}
