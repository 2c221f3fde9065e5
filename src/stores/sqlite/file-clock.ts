import type { Instant } from "../../core/time.ts";
import type { MachineClock, System } from "../../ports/system.ts";
import type { SqliteFile } from "./binding.ts";
import { Connection } from "./connection.ts";
import { type Anchor, anchorAt, needsAnchor, type Reading, restartedAt, timeAt } from "./file-time.ts";
import type { Session } from "./session.ts";
import { HAS_CLOCK, PUT_ANCHOR, READ_ANCHOR } from "./statements.ts";

type Clocks = Pick<System, "wall" | "machine">;

/**
 * The time of the file, on which all its processes agree; see `timeAt`. If the machine has no shared clock, it is the
 * wall clock, and setting that clock moves the deadlines of the file.
 */
export class FileClock {
  readonly #connection: Connection;
  readonly #system: Clocks;

  constructor(connection: Connection, system: Clocks) {
    this.#connection = connection;
    this.#system = system;
  }

  async now(): Promise<Instant> {
    const { machine } = this.#system;
    if (!machine) {
      this.#connection.assertOpen();
      return Math.floor(this.#system.wall());
    }
    const [time, need] = await this.#connection.read((session) => {
      const anchor = readAnchor(session);
      const reading = read(this.#system, machine);
      return [timeAt(anchor, reading), needsAnchor(anchor, reading)] as const;
    });
    if (need === "now") return this.#connection.write((session) => this.#anchor(session, machine));
    if (need === "soon") this.#connection.writeIfFree((session) => this.#anchor(session, machine));
    return Math.floor(time);
  }

  /** Writes an anchor for the next process. If the file is busy, other processes are running and write one. */
  leave(): void {
    const { machine } = this.#system;
    if (machine) this.#connection.writeIfFree((session) => this.#anchor(session, machine));
  }

  #anchor(session: Session, machine: MachineClock): Instant {
    const anchor = readAnchor(session);
    const next = anchorAt(anchor, read(this.#system, machine));
    putAnchor(session, next);
    return Math.floor(next.time);
  }
}

/**
 * Restarts the time of a file from the wall clock, if no other connection has it open: then no process runs a
 * deadline, and waiting jobs are compared with the time of day again. Does nothing if the file is open elsewhere.
 */
export async function resetClockIfAlone(file: SqliteFile, system: System): Promise<void> {
  const { machine } = system;
  if (!machine) return;
  const connection = new Connection(file, system);
  try {
    connection.claimAlone();
    connection.writeIfFree((session) => {
      if (!session.get(HAS_CLOCK)) return;
      putAnchor(session, restartedAt(readAnchor(session), read(system, machine)));
    });
  } catch {
    // The process that opens the file to work with it reports what is wrong.
  } finally {
    await connection.close();
  }
}

function read({ wall }: Clocks, machine: MachineClock): Reading {
  return { boot: machine.boot, monotonic: machine.monotonic(), slept: machine.slept(), wall: wall() };
}

function readAnchor(session: Session): Anchor | undefined {
  const row = session.get(READ_ANCHOR);
  if (!row) return undefined;
  const [boot, monotonic, slept, wall, time] = row as [string, number, number, number, number];
  return { boot, monotonic, slept, wall, time };
}

function putAnchor(session: Session, { boot, monotonic, slept, wall, time }: Anchor): void {
  session.run(PUT_ANCHOR, [boot, monotonic, slept, wall, time]);
}
