import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** With more open files than this, looking at each, once a second, takes more than a few milliseconds. */
const MOST_FILES = 2_000;

/**
 * What Linux says about this process's locks on a SQLite file. SQLite's locks belong to the process: whenever any part
 * of the process closes the file, the system drops all of them, also those of other copies of SQLite.
 */
export class ProcessFiles {
  readonly #path: string;
  /** A file system may hide its locks. Then their absence proves nothing. */
  readonly #isShown: boolean;

  /** Call it while a connection of this process has the file open. */
  constructor(path: string) {
    this.#path = path;
    this.#isShown = locksShown(openFiles().get(path)) === true;
  }

  /** What is wrong, if anything: the locks are gone, or several copies of SQLite have the file open. */
  look(): "dropped" | "copies" | undefined {
    const files = openFiles();
    // Each copy of SQLite opens the shared memory once.
    if ((files.get(`${this.#path}-shm`)?.length ?? 0) > 1) return "copies";
    // An open connection has a lock at all times.
    return this.#isShown && locksShown(files.get(this.#path)) === false ? "dropped" : undefined;
  }
}

/** The numbers of this process's open files, by path. Empty if the system does not show them or they are too many. */
function openFiles(): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  if (process.platform !== "linux") return found;
  const numbers = read(() => readdirSync("/proc/self/fd")) ?? [];
  if (numbers.length > MOST_FILES) return found;
  for (const number of numbers) {
    const path = read(() => readlinkSync(`/proc/self/fd/${number}`));
    if (path === undefined) continue;
    const same = found.get(path);
    if (same) same.push(number);
    else found.set(path, [number]);
  }
  return found;
}

/**
 * Whether the process has a lock on one of these open files; undefined if the system does not tell. `/proc/locks` is
 * no use here: while other processes lock and unlock, a reader of it misses lines at random.
 */
function locksShown(files: readonly string[] | undefined): boolean | undefined {
  const texts = (files ?? []).map((file) => read(() => readFileSync(`/proc/self/fdinfo/${file}`, "utf8")));
  if (texts.some((text) => text?.includes("\nlock:"))) return true;
  return texts.length === 0 || texts.includes(undefined) ? undefined : false;
}

/** Files of the process come and go while they are listed, and a container may hide the list. */
function read<Value>(work: () => Value): Value | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
