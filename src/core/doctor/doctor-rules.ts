import { counted, roughly } from "../job/why/reason.ts";
import type {
  DoctorFacts,
  PostgresFacts,
  ProcessFacts,
  SqliteFacts,
  StoreFacts,
  WorkFacts,
} from "./doctor-facts.ts";

/** `error`: jobs are at risk or do not run. `warning`: somebody should look. `note`: good to know. */
export type DoctorLevel = "error" | "warning" | "note";

/** A problem: what is wrong, and what to do. */
export interface Problem {
  readonly level?: DoctorLevel;
  readonly sentence: string;
  readonly action: string;
}

/** A rule gives a problem, a sentence that says what is fine, or null if it does not apply. */
export interface Rule {
  readonly level: DoctorLevel;
  readonly look: (facts: DoctorFacts) => Problem | string | null;
}

const MEGABYTE = 1_000_000;
const GIGABYTE = 1_000 * MEGABYTE;
const CLOCK_OFFSET = 1_000;
const SLOW_ANSWER = 100;
const LATELY = 10 * 60_000;

/** A round number of bytes for people. */
function sizeText(bytes: number): string {
  if (bytes >= GIGABYTE) return `${(bytes / GIGABYTE).toFixed(1)} GB`;
  return bytes >= MEGABYTE ? `${Math.round(bytes / MEGABYTE)} MB` : `${Math.ceil(bytes / 1_000)} kB`;
}

/** At most five names, then how many more there are. */
function listText(names: readonly string[]): string {
  const shown = names.slice(0, 5).join(", ");
  return names.length > 5 ? `${shown} and ${names.length - 5} more` : shown;
}

const quoted = (names: readonly string[]) => names.map((name) => `"${name}"`);

type Look<Facts> = (facts: Facts) => Problem | string | null;

const ofProcess =
  (look: Look<ProcessFacts>): Rule["look"] =>
  ({ process }) =>
    process && look(process);
const ofStore =
  (look: Look<StoreFacts>): Rule["look"] =>
  ({ store }) =>
    store && look(store);
const ofSqlite = (look: Look<SqliteFacts>): Rule["look"] =>
  ofStore(({ diagnosis }) => (diagnosis?.sqlite ? look(diagnosis.sqlite) : null));
const ofPostgres = (look: Look<PostgresFacts>): Rule["look"] =>
  ofStore(({ diagnosis }) => (diagnosis?.postgres ? look(diagnosis.postgres) : null));
const ofWork =
  (look: Look<WorkFacts>): Rule["look"] =>
  ({ work }) =>
    work && look(work);

function copiesProblem({ copies }: ProcessFacts, name: string, because: string): Problem | null {
  const found = copies.filter((copy) => copy.name === name);
  const versions = [...new Set(found.map(({ version }) => version))];
  if (found.length < 2) return null;
  const places = listText(found.map(({ path, version }) => `${path} (${version})`));
  return {
    sentence: `There are ${found.length} copies of ${name} (${versions.join(", ")}): ${places}. ${because}`,
    action: `Run npm ls ${name}, and make all packages use one version, for example with npm dedupe.`,
  };
}

function nodeProblem({ nodeVersion }: ProcessFacts): Problem | string {
  const [major = 0, minor = 0] = nodeVersion.split(".").map(Number);
  if (major < 22 || (major === 22 && minor < 14))
    return {
      sentence: `This is Node ${nodeVersion}; curfew needs Node 22.14 or newer.`,
      action: "Install Node 24.",
    };
  if (major % 2 === 1)
    return {
      level: "note",
      sentence: `Node ${nodeVersion} has an odd version, which gets fixes for half a year only.`,
      action: "Use a version with long-term support, such as Node 24.",
    };
  return `Node ${nodeVersion}`;
}

function diskProblem({ diskFree, diskSize, file }: SqliteFacts): Problem | string {
  const share = diskSize === 0 ? 1 : diskFree / diskSize;
  const sentence = `The disk of ${file} has ${sizeText(diskFree)} free (${Math.floor(share * 100)} %).`;
  const action =
    "Free space or enlarge the disk. On a full disk every enqueue and every verdict fails until there is room again.";
  if (diskFree < 200 * MEGABYTE || share < 0.01) return { level: "error", sentence, action };
  if (share < 0.1 && diskFree < 10 * GIGABYTE) return { sentence, action };
  return `${sizeText(diskFree)} are free on the disk`;
}

/** Each rule by its code. docs/guides/operations.md has a section for each of them. */
export const DOCTOR_RULES = {
  store_unreachable: {
    level: "error",
    look: ({ openProblem, missingFile, oldSchema, store }) => {
      if (openProblem === null) return store && `the ${store.name} store answers in ${store.answerTime} ms`;
      if (oldSchema) return "the store answers";
      if (missingFile !== undefined)
        return {
          sentence: `There is no file ${missingFile}.`,
          action: "Check the path, or make a new store with curfew migrate.",
        };
      return {
        sentence: `There is no answer: ${openProblem}.`,
        action:
          "Check the address, that the store or server runs, and that this machine and this role may reach it.",
      };
    },
  },
  store_slow: {
    level: "warning",
    look: ofStore(({ answerTime }) =>
      answerTime <= SLOW_ANSWER
        ? null
        : {
            sentence: `The store took ${answerTime} ms to answer.`,
            action:
              "Look for load on the database, and for distance: run workers in the same zone as their database.",
          },
    ),
  },
  store_read_only: {
    level: "error",
    look: ofStore(({ diagnosis }) => {
      if (!diagnosis) return null;
      if (diagnosis.writeProblem === null) return "the store can be written";
      return {
        sentence: `The store cannot be written: ${diagnosis.writeProblem}.`,
        action: "Give this user or role the right to write, and do not point curfew at a read-only replica.",
      };
    }),
  },
  store_not_durable: {
    level: "warning",
    look: ofStore(({ durable, name }) =>
      durable === "none"
        ? {
            sentence: `The ${name} store keeps jobs in one process: they are gone when it ends.`,
            action: "Use SQLite or PostgreSQL for jobs that matter.",
          }
        : null,
    ),
  },
  schema_version: {
    level: "error",
    look: ({ store, oldSchema }) => {
      const versions = oldSchema ?? store?.diagnosis;
      if (!versions) return null;
      const { schemaVersion, newestVersion } = versions;
      if (schemaVersion === newestVersion) return `the schema has version ${schemaVersion}, the newest`;
      return {
        sentence: `The schema has version ${schemaVersion}; this curfew knows version ${newestVersion}.`,
        action:
          schemaVersion < newestVersion
            ? "Run curfew migrate with a role that may alter tables; curfew migrate --plan shows the changes."
            : "Update curfew in this process.",
      };
    },
  },
  clock_offset: {
    level: "warning",
    look: ofStore(({ clockOffset }) =>
      Math.abs(clockOffset) <= CLOCK_OFFSET
        ? `the clocks differ by ${Math.abs(Math.round(clockOffset))} ms`
        : {
            sentence: `The clock of this machine is ${roughly(Math.abs(clockOffset))} ${clockOffset > 0 ? "behind" : "ahead of"} the clock of the store.`,
            action:
              "Set up NTP on both machines. Deadlines follow the store's clock and stay right, but log lines of different machines do not fit together.",
          },
    ),
  },
  wal_off: {
    level: "error",
    look: ofSqlite(({ journalMode, synchronous }) =>
      journalMode === "wal" && synchronous >= 1
        ? "SQLite writes a WAL and syncs it"
        : {
            sentence: `SQLite has journal_mode ${journalMode} and synchronous ${synchronous}.`,
            action:
              "Let no other program change these settings: curfew needs WAL and synchronous = normal or more.",
          },
    ),
  },
  wal_large: {
    level: "warning",
    look: ofSqlite(({ logBytes, file }) =>
      logBytes < 500 * MEGABYTE
        ? null
        : {
            sentence: `The WAL of ${file} has ${sizeText(logBytes)}.`,
            action:
              "Find the process with a long read transaction on this file and end it: it keeps the log from shrinking.",
          },
    ),
  },
  network_disk: {
    level: "error",
    look: ofSqlite(({ isNetworkDisk, file }) =>
      isNetworkDisk
        ? {
            sentence: `${file} is on a network file system, whose locks SQLite cannot trust.`,
            action: "Move the file to a local disk, or use PostgreSQL.",
          }
        : null,
    ),
  },
  disk_low: { level: "warning", look: ofSqlite(diskProblem) },
  file_open_to_others: {
    level: "warning",
    look: ofSqlite(({ mode, file }) => {
      if (mode === null) return null;
      if ((mode & 0o007) === 0) return "other users cannot read the file";
      return {
        sentence: `Every user of this machine can ${(mode & 0o002) === 0 ? "read" : "change"} ${file} (mode ${(mode & 0o777).toString(8)}).`,
        action: `Run chmod o-rwx ${file} ${file}-wal ${file}-shm: payloads may hold secrets.`,
      };
    }),
  },
  not_crash_safe: {
    level: "error",
    look: ofPostgres(({ settings }) => {
      const off = Object.entries(settings).filter(([, value]) => value === "off");
      if (off.length === 0) return "PostgreSQL syncs what it acknowledges";
      return {
        sentence: `PostgreSQL has ${off.map(([name]) => `${name} = off`).join(" and ")}.`,
        action: "Turn it on: with it off, a crash of the database loses jobs that were acknowledged.",
      };
    }),
  },
  pooler: {
    level: "warning",
    look: ofPostgres(({ hasPooler }) => {
      if (hasPooler === null) return null;
      if (!hasPooler) return "no pooler is between curfew and PostgreSQL";
      return {
        sentence: "A connection pooler is between curfew and PostgreSQL.",
        action:
          "Let it pool sessions, not transactions, or connect past it: curfew uses prepared statements, session settings and LISTEN.",
      };
    }),
  },
  connections_low: {
    level: "warning",
    look: ofPostgres(({ connections, mostConnections }) =>
      connections < mostConnections * 0.8
        ? `${connections} of ${mostConnections} connections are in use`
        : {
            sentence: `PostgreSQL has ${connections} of ${mostConnections} connections in use.`,
            action: "Raise max_connections or run fewer processes: each engine opens up to 8 connections.",
          },
    ),
  },
  autovacuum_off: {
    level: "warning",
    look: ofPostgres(({ autovacuum }) =>
      autovacuum === "on"
        ? null
        : {
            sentence: "autovacuum is off in PostgreSQL.",
            action: "Turn it on: queue tables change all the time, and every claim gets slower without it.",
          },
    ),
  },
  bloat: {
    level: "warning",
    look: ({ store }) => {
      const { sqlite, postgres } = store?.diagnosis ?? {};
      if (sqlite) {
        const { bytes, unusedBytes, file } = sqlite;
        if (unusedBytes < 100 * MEGABYTE || unusedBytes < bytes / 2) return null;
        return {
          sentence: `${sizeText(unusedBytes)} of the ${sizeText(bytes)} of ${file} are unused.`,
          action: `Nothing is wrong: new jobs use this space. To give it back, stop all processes and run sqlite3 ${file} vacuum.`,
          level: "note",
        };
      }
      const bloated = (postgres?.tables ?? []).filter(
        ({ deadRows, liveRows }) => deadRows > 100_000 && deadRows > liveRows,
      );
      if (bloated.length === 0) return null;
      const tables = listText(bloated.map(({ name, deadRows }) => `${name} (${counted(deadRows, "row")})`));
      return {
        sentence: `More rows are dead than alive in ${tables}.`,
        action:
          "End long transactions (pg_stat_activity), and let autovacuum run more often on these tables.",
      };
    },
  },
  node_version: { level: "error", look: ofProcess(nodeProblem) },
  second_sqlite: {
    level: "warning",
    look: ofProcess((process) => {
      const { loadedSqlite } = process;
      if (loadedSqlite.length > 1)
        return {
          sentence: `This process has loaded ${loadedSqlite.length} SQLite libraries: ${listText(loadedSqlite)}.`,
          action:
            "Open a file with one of them only: when one library closes the file, the system drops the locks of the other, and the file can be damaged.",
        };
      return copiesProblem(process, "better-sqlite3", "Two copies in one process do not share locks.");
    }),
  },
  second_opentelemetry: {
    level: "warning",
    look: ofProcess((process) =>
      copiesProblem(process, "@opentelemetry/api", "Spans of one copy do not reach the SDK of the other."),
    ),
  },
  maintenance_on: {
    level: "warning",
    look: ofWork(({ maintenanceSince, now }) =>
      maintenanceSince === null
        ? null
        : {
            sentence: `Maintenance has been on for ${roughly(now - maintenanceSince)}: no queue hands out jobs.`,
            action: "Run curfew maintenance off when the work is done.",
          },
    ),
  },
  queue_paused: {
    level: "note",
    look: ofWork(({ paused, now }) => {
      if (paused.length === 0) return null;
      const isWaiting = paused.some(({ waiting }) => waiting > 0);
      const queues = paused
        .toSorted((a, b) => b.waiting - a.waiting)
        .map(({ queue, since, waiting }) => {
          const jobs = waiting === 0 ? "" : `, with ${counted(waiting, "ready job")}`;
          return `"${queue}" for ${roughly(now - since)}${jobs}`;
        });
      return {
        ...(isWaiting && { level: "warning" as const }),
        sentence: `Paused queues: ${listText(queues)}.`,
        action: "Run curfew queues resume <queue> where the pause is over.",
      };
    }),
  },
  queue_without_worker: {
    level: "error",
    look: ofWork(({ unattended }) => {
      if (unattended.length === 0) return "every queue with ready jobs has a worker";
      const queues = unattended.map(({ queue, waiting, hasMore, didYouMean }) => {
        const meant = didYouMean === null ? "" : `, did you mean "${didYouMean}"?`;
        return `"${queue}" (${hasMore ? "more than " : ""}${counted(waiting, "job")}${meant})`;
      });
      return {
        sentence: `No live worker takes ${listText(queues)}.`,
        action:
          "Start a worker for the queue, such as curfew work worker.ts, or correct the name of the queue.",
      };
    }),
  },
  no_worker: {
    level: "note",
    look: ofWork(({ workers, unattended }) => {
      const live = workers.filter(({ isSilent }) => !isSilent).length;
      if (live > 0) return `${counted(live, "worker")} alive`;
      // queue_without_worker has said it.
      if (unattended.length > 0) return null;
      return { sentence: "No worker is alive.", action: "Start one: curfew work <module>." };
    }),
  },
  worker_lost: {
    level: "warning",
    look: ofWork(({ workers }) => {
      const lost = workers.filter(({ isSilent, isStopping }) => isSilent && !isStopping);
      if (lost.length === 0) return null;
      return {
        sentence: `${counted(lost.length, "worker")} stopped beating without a goodbye: ${listText(lost.map(({ id }) => id))}.`,
        action:
          "Look whether the process crashed or its event loop is blocked. Other workers take its jobs back.",
      };
    }),
  },
  worker_stuck: {
    level: "error",
    look: ofWork(({ workers }) => {
      const stuck = workers.filter(({ halted, isSilent }) => halted === "stuck" && !isSilent);
      if (stuck.length === 0) return null;
      return {
        sentence: `${counted(stuck.length, "worker")} took no more jobs, because too many handlers ignore their signal: ${listText(stuck.map(({ id }) => id))}.`,
        action: "Restart the worker, and let its handlers stop when signal aborts or run them in a sandbox.",
      };
    }),
  },
  worker_failing: {
    level: "error",
    look: ofWork(({ workers }) => {
      const failing = workers.filter(({ halted, isSilent }) => halted === "failing" && !isSilent);
      if (failing.length === 0) return null;
      const texts = failing.map(({ id, problem }) => (problem === null ? id : `${id} (${problem})`));
      return {
        sentence: `The store refuses the claims of ${counted(failing.length, "worker")}: ${listText(texts)}.`,
        action:
          "Read the log of the worker, and check that its role may write and that its curfew is not too old.",
      };
    }),
  },
  worker_blocked: {
    level: "warning",
    look: ofWork(({ workers, now }) => {
      const blocked = workers.filter(({ blocked: last }) => last !== null && now - last.at < LATELY);
      if (blocked.length === 0) return null;
      const texts = blocked.map(({ id, blocked: last }) => `${id} for ${roughly(last?.gap ?? 0)}`);
      return {
        sentence: `In the last ten minutes the event loop was blocked: ${listText(texts)}.`,
        action:
          "Move long computation into a sandbox: while a loop is blocked, no deadline in that process can fire.",
      };
    }),
  },
  sandbox_broken: {
    level: "error",
    look: ofWork(({ workers }) => {
      const broken = workers
        .filter(({ isSilent }) => !isSilent)
        .flatMap(({ brokenSandboxes }) => brokenSandboxes);
      if (broken.length === 0) return null;
      return {
        sentence: `The sandbox of ${listText(quoted([...new Set(broken)]))} does not load, so its jobs are given back.`,
        action: "Read the error in the log of the worker, correct the module, and restart the worker.",
      };
    }),
  },
} as const satisfies Readonly<Record<string, Rule>>;

export type DoctorCode = keyof typeof DOCTOR_RULES;
