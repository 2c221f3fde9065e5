import type { JobRow } from "../core/job/job.ts";
import type { Instant } from "../core/time.ts";
import type { Processor } from "../engine/attempt/processor.ts";
import { type RunHost, RunningAttempt, type Verdict } from "../engine/attempt/running-attempt.ts";
import type { Deadlines } from "../ojs/read-job.ts";
import { AttemptNotes } from "./remote-attempt-notes.ts";
import type { Transport } from "./transport.ts";

/** What an attempt needs of the worker that runs it. */
export interface RemoteAttemptHost extends RunHost {
  readonly id: string;
  readonly transport: Transport;
  /** Sends the verdict, after what was written before it. */
  report(row: JobRow, verdict: Verdict, notes: AttemptNotes | undefined): void;
  /** The handler gave a sign of life that the server should hear of. */
  beaten(attempt: RemoteAttempt): void;
}

/**
 * An attempt of a fetched job. The server is the authority; this object keeps the deadlines that the server named for as
 * long as the handler runs, and reports what became of it.
 */
export class RemoteAttempt extends RunningAttempt<RemoteAttemptHost> {
  /** By `clock.elapsed()`: when the server last heard a beat for it. */
  beatenAt: number;
  /** The handler has given a beat that the server has not heard of. */
  hasUnsentBeat = false;
  #notes: AttemptNotes | undefined;

  constructor(host: RemoteAttemptHost, processor: Processor, row: JobRow, now: number) {
    super(host, processor, row, now);
    this.beatenAt = now;
  }

  protected override submit(verdict: Verdict): void {
    // Past the hard deadline the server takes no notes any more, and the verdict must not wait for them.
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

  /** The server names other deadlines than before (an extension): they hold from now on. */
  refresh({ softAt, hardAt, totalAt, stallAt, silence }: Deadlines): void {
    // What was signalled stays signalled (SEMANTICS 3.3).
    if (this.refusal || this.reason) return;
    const { row } = this;
    const heartbeat = silence === undefined ? row.heartbeat : silence;
    const isSame =
      softAt === row.softAt &&
      hardAt === row.hardAt &&
      totalAt === row.totalAt &&
      heartbeat === row.heartbeat;
    if (isSame) return;
    // A new heartbeat counts from the extension; otherwise our own beats know better than the server's last one.
    const isSilenceKept = heartbeat === row.heartbeat || this.policy.beats === "worker";
    const ownStallAt = isSilenceKept ? row.stallAt : stallAt;
    const policy = { ...this.policy, attempt: this.#extended(softAt, totalAt) };
    this.reschedule({ ...row, policy, softAt, hardAt, totalAt, heartbeat, stallAt: ownStallAt });
  }

  /** The attempt timeout that these deadlines stand for: the server names instants only. */
  #extended(softAt: Instant | null, totalAt: Instant | null): number | null {
    const { row, policy } = this;
    if (softAt === row.softAt || softAt === null || softAt === totalAt) return policy.attempt;
    const isComparable = row.softAt !== null && row.softAt !== row.totalAt && policy.attempt !== null;
    if (isComparable) return (policy.attempt as number) + softAt - (row.softAt as Instant);
    return softAt - (row.startedAt as Instant);
  }
}
