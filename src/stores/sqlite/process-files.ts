import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";

/** With more open files than this, looking at each takes longer than a millisecond. */
const MOST_FILES = 500;

/**
 * What Linux says about this process's locks on a SQLite file. SQLite's locks belong to the process: whenever any part
 * of the process closes the file, the system drops all of them, also those of other copies of SQLite.
 */
export class ProcessFiles {
  readonly #path: string;
  /** A file system may hide its locks, or show them with other numbers. Then their absence proves nothing. */
  readonly #isShown: boolean;

  /** Call it while a connection of this process has the file open. */
  constructor(path: string) {
    this.#path = path;
    this.#isShown = process.platform === "linux" && hasLock(path);
  }

  /** An open connection has a lock at all times. */
  get areDropped(): boolean {
    return this.#isShown && !hasLock(this.#path);
  }

  /** How many copies of SQLite in this process have the file open: each opens the shared memory once. */
  get copies(): number {
    if (process.platform !== "linux") return 1;
    const files = read(() => readdirSync("/proc/self/fd")) ?? [];
    if (files.length > MOST_FILES) return 1;
    const memory = `${this.#path}-shm`;
    return files.filter((file) => read(() => readlinkSync(`/proc/self/fd/${file}`)) === memory).length;
  }
}

/** A line is `1: POSIX  ADVISORY  READ 3018 fe:00:2211951 1073741826 1073742335`. */
function hasLock(path: string): boolean {
  const inode = statSync(path, { throwIfNoEntry: false })?.ino;
  const lines = read(() => readFileSync("/proc/locks", "utf8"))?.split("\n") ?? [];
  const own = ` ${process.pid} `;
  return lines.some((line) => line.includes(own) && line.includes(`:${inode} `));
}

/** Files of the process come and go while they are listed, and a container may hide the list. */
function read<Value>(work: () => Value): Value | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
