import type { JobRow } from "../core/job/job.ts";
import type { Instant } from "../core/time.ts";
import type { Processor } from "../engine/attempt/processor.ts";
import { type RunDeps, RunningAttempt, type Verdict } from "../engine/attempt/running-attempt.ts";
import type { Deadlines } from "../ojs/read-job.ts";
import { AttemptNotes } from "./remote-attempt-notes.ts";
import type { Transport } from "./transport.ts";

/** What an attempt needs from its worker. */
export interface RemoteAttemptDeps extends RunDeps {
  readonly id: string;
  readonly transport: Transport;
  /** Sends the verdict after the attempt's notes. */
  report(row: JobRow, verdict: Verdict, notes: AttemptNotes | undefined): void;
  /** The handler sent a heartbeat that must go to the server. */
  beaten(attempt: RemoteAttempt): void;
}

/**
 * An attempt of a fetched job. The server decides; this object keeps the deadlines that the server sent while the handler
 * runs, and reports the outcome.
 */
export class RemoteAttempt extends RunningAttempt<RemoteAttemptDeps> {
  /** When the server last got a beat, by `clock.elapsed()`. */
  beatenAt: number;
  /** The handler's last heartbeat is not sent yet. */
  hasUnsentBeat = false;
  #notes: AttemptNotes | undefined;

  constructor(host: RemoteAttemptDeps, processor: Processor, row: JobRow, now: number) {
    super(host, processor, row, now);
    this.beatenAt = now;
  }

  protected override submit(verdict: Verdict): void {
    // Past the hard deadline the server refuses notes, so the verdict must not wait for them.
    const isForced = verdict.type === "expire" || verdict.type === "stall";
    if (isForced) this.#notes?.abandon(this.reason);
    this.host.report(this.row, verdict, this.#notes);
  }

  override stop(kind: "cancelled" | "lost"): void {
    if (this.refusal) return;
    super.stop(kind);
    this.#notes?.abandon(this.reason);
  }

  protected override beaten(): void {
    this.hasUnsentBeat = true;
    this.host.beaten(this);
  }

  protected override get notes(): AttemptNotes {
    const { id: worker, transport } = this.host;
    const { parts, row } = this;
    this.#notes ??= new AttemptNotes({ parts, transport, row, worker, lost: () => this.stop("lost") });
    return this.#notes;
  }

  /** Takes new deadlines from the server, after an extension. */
  refresh({ softAt, hardAt, totalAt, stallAt, silence }: Deadlines): void {
    // A sent signal is not taken back (SEMANTICS 3.3).
    if (this.refusal || this.reason) return;
    const { row } = this;
    const heartbeat = silence === undefined ? row.heartbeat : silence;
    const isSame =
      softAt === row.softAt &&
      hardAt === row.hardAt &&
      totalAt === row.totalAt &&
      heartbeat === row.heartbeat;
    if (isSame) return;
    // A new heartbeat counts from the extension. Otherwise this worker's own beats are newer than the server's.
    const isSilenceKept = heartbeat === row.heartbeat || this.policy.beats === "worker";
    const ownStallAt = isSilenceKept ? row.stallAt : stallAt;
    const policy = { ...this.policy, attempt: this.#extended(softAt, totalAt) };
    this.reschedule({ ...row, policy, softAt, hardAt, totalAt, heartbeat, stallAt: ownStallAt });
  }

  /** The attempt timeout behind these deadlines: the server sends instants only. */
  #extended(softAt: Instant | null, totalAt: Instant | null): number | null {
    const { row, policy } = this;
    if (softAt === row.softAt || softAt === null || softAt === totalAt) return policy.attempt;
    const isComparable = row.softAt !== null && row.softAt !== row.totalAt && policy.attempt !== null;
    if (isComparable) return (policy.attempt as number) + softAt - (row.softAt as Instant);
    return softAt - (row.startedAt as Instant);
  }
}
