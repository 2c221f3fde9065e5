import type { JobRow } from "../../src/core/job/job.ts";

/** A verdict that the store accepted, as the worker was answered. */
interface Verdict {
  readonly fence: number;
  readonly at: number;
}

/** What the surviving history has of a job. */
export interface Survived {
  /** Null: the job is gone. */
  readonly row: Pick<JobRow, "state" | "fence"> | null;
  /** How many `job.completed` the journal has. A verdict and its event are one write of one home. */
  readonly completed: number;
}

export interface Judged {
  /** Acknowledged jobs that are gone. */
  readonly lost: number;
  /** Jobs that are there and did not complete. */
  readonly unfinished: number;
  /**
   * Jobs of which a verdict was accepted that the surviving history does not have: it was lost with a dead master. Each
   * was accepted under another fence than the verdict that survived, before a failover.
   */
  readonly takenBack: number;
  /** What must not be, job by job. */
  readonly broken: readonly string[];
}

/** What was acknowledged, and what ran: kept in this process, so no failover can take it back. */
export class Ledger {
  readonly acknowledged = new Set<string>();
  readonly runs = new Map<string, number>();
  readonly #verdicts = new Map<string, Verdict[]>();
  /** When another node had the slots of a dead master. */
  readonly promotions: number[] = [];
  #awaited: { readonly from: number; readonly resolve: (at: number) => void } | undefined;
  #waiting: { readonly target: number; readonly resolve: () => void }[] = [];

  acknowledge(id: string): void {
    this.acknowledged.add(id);
    const size = this.acknowledged.size;
    for (const { resolve } of this.#waiting.filter(({ target }) => size >= target)) resolve();
    this.#waiting = this.#waiting.filter(({ target }) => size < target);
  }

  ran(id: string): void {
    this.runs.set(id, (this.runs.get(id) ?? 0) + 1);
  }

  /** The store accepted a verdict under this fence. */
  accepted(id: string, fence: number, at = performance.now()): void {
    this.#verdicts.set(id, [...(this.#verdicts.get(id) ?? []), { fence, at }]);
    if (this.#awaited && at >= this.#awaited.from) this.#awaited.resolve(at);
  }

  /** Resolves with the moment of the first verdict that is accepted from then on. */
  verdictFrom(from: number): Promise<number> {
    return new Promise((resolve) => {
      this.#awaited = { from, resolve };
    });
  }

  /** Compares every acknowledged job with the history that survived. */
  judge(survivedOf: (id: string) => Survived): Judged {
    const broken: string[] = [];
    let [lost, unfinished, takenBack] = [0, 0, 0];
    for (const id of this.acknowledged) {
      const { row, completed } = survivedOf(id);
      const verdicts = this.#verdicts.get(id) ?? [];
      if (row === null) lost += 1;
      else if (row.state !== "completed") unfinished += 1;
      const expected = row?.state === "completed" ? 1 : 0;
      if (row && completed !== expected)
        broken.push(`job ${id} is ${row.state}, and its history has ${completed} verdicts`);
      if (new Set(verdicts.map(({ fence }) => fence)).size < verdicts.length)
        broken.push(`job ${id} has two accepted verdicts of one claim`);
      if (row === null) continue;
      const gone = verdicts.filter(({ fence }) => expected === 0 || fence !== row.fence);
      if (gone.length > 0) takenBack += 1;
      for (const { fence, at } of gone)
        if (!this.promotions.some((promotedAt) => at < promotedAt))
          broken.push(`job ${id}: its verdict of claim ${fence} is gone, and no master died after it`);
    }
    return { lost, unfinished, takenBack, broken };
  }

  /** Resolves when this many jobs are acknowledged. */
  reached(target: number): Promise<void> {
    if (this.acknowledged.size >= target) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ target, resolve }));
  }
}
