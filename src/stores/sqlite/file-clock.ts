import type { Instant } from "../../core/time.ts";
import type { MachineClock, System } from "../../ports/system.ts";
import { Connection } from "./connection.ts";
import { type Anchor, anchorAt, needsAnchor, type Reading, restartedAt, timeAt } from "./file-time.ts";
import type { Session } from "./session.ts";
import { HAS_CLOCK, PUT_ANCHOR, READ_ANCHOR } from "./statements.ts";

type Clocks = Pick<System, "wall" | "machine">;

/**
 * The time of the file, which all processes on it agree on: see `timeAt`. Where the machine has no clock that its
 * processes share, it is the wall clock, and whoever sets that moves the deadlines of the file.
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
    if (need === "now") return this.#connection.write((session) => this.#drop(session, machine));
    if (need === "soon") this.#connection.writeIfFree((session) => this.#drop(session, machine));
    return Math.floor(time);
  }

  /** Leaves the time for whoever comes next, unless the file is busy: then others are here, who do that. */
  leave(): void {
    const { machine } = this.#system;
    if (machine) this.#connection.writeIfFree((session) => this.#drop(session, machine));
  }

  #drop(session: Session, machine: MachineClock): Instant {
    const anchor = readAnchor(session);
    const next = anchorAt(anchor, read(this.#system, machine));
    putAnchor(session, next);
    return Math.floor(next.time);
  }
}

/**
 * Sets a file right by the wall clock while nobody else has it open: no deadline is under way in any process, and
 * those that wait are compared with the time of the day again. A file that others have open is left alone.
 */
export async function setRightIfAlone(path: string, system: System): Promise<void> {
  const { machine } = system;
  if (!machine) return;
  const connection = new Connection(path, system);
  try {
    connection.claimAlone();
    connection.writeIfFree((session) => {
      if (!session.get(HAS_CLOCK)) return;
      putAnchor(session, restartedAt(readAnchor(session), read(system, machine)));
    });
  } catch {
    // Whatever is wrong with the file is told by who opens it to work with it.
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
