import type { JobRow } from "../../src/core/job/job.ts";
import type { LimitOptions } from "../../src/core/limit/limit.ts";
import { hasEnded, type JobLedger, type Run } from "./ledger.ts";
import type { Plan } from "./plan.ts";
import type { Change } from "./watched-store.ts";

/** An entry may follow the start that counts by as much; beyond that it is given back. */
const MOST_SHIFT = 300;
const SLACK = 60;

/**
 * What limits promise, worked out from what the simulator wrote into its calls: never more at once, never more in a
 * span, never more in a queue. That no place leaks needs no rule of its own: whatever waited for it would not settle.
 */
export class LimitRules {
  readonly #plan: Plan;
  readonly #jobs: ReadonlyMap<string, JobLedger>;
  readonly #entries = new Map<string, { at: number; doubt: number }[]>();

  constructor(plan: Plan, jobs: ReadonlyMap<string, JobLedger>) {
    this.#plan = plan;
    this.#jobs = jobs;
  }

  /** What is wrong once this change has happened, if anything is. */
  changed(change: Change): string | undefined {
    const { call, after } = change;
    const problem =
      this.#overtaken(change) ?? this.#tooManyBehind(after.limitKey) ?? this.#tooManyIn(after.queue);
    return problem ?? (call === "enqueue" ? this.#tooDeep(after.queue) : undefined);
  }

  /** The home of a limit forgot starts, so those before count no more. */
  forget(limitKey: string | null): void {
    if (limitKey !== null) this.#entries.delete(limitKey);
  }

  #countLive(counts: (row: JobRow) => boolean): number {
    let count = 0;
    for (const { row, isGone } of this.#jobs.values())
      if (!isGone && !hasEnded(row.state) && counts(row)) count += 1;
    return count;
  }

  /** A job with a strict limit that was not entered keeps its slot: nobody asked for the next one of its key. */
  #overtaken({ before, after }: Change): string | undefined {
    const limit = this.#plan.limits.find(({ key }) => key === after.limitKey);
    if (!limit?.strict || before?.state !== "active" || before.startedAt !== null) return undefined;
    // A snooze is a return of a handler whose start may not be written.
    const isUnentered = after.returns === before.returns;
    return isUnentered && (after.state === "scheduled" || after.state === "pending")
      ? `a job that was given back unrun is ${after.state} and left its slot of "${limit.key}"`
      : undefined;
  }

  #tooManyBehind(limitKey: string | null): string | undefined {
    const limit = this.#plan.limits.find(({ key }) => key === limitKey);
    if (limit?.concurrency === undefined) return undefined;
    const held = this.#countLive(
      (row) =>
        row.limitKey === limitKey &&
        (isAdmitted(row) || (limit.strict === true && row.state === "retryable")),
    );
    if (held <= limit.concurrency) return undefined;
    return `${held} jobs hold places of "${limitKey}", which has ${limit.concurrency}`;
  }

  #tooManyIn(queue: string): string | undefined {
    const most = this.#plan.settings[queue]?.concurrency;
    if (most === undefined) return undefined;
    const active = this.#countLive((row) => row.queue === queue && row.state === "active");
    return active <= most ? undefined : `${active} jobs of ${queue} are active, and ${most} may be`;
  }

  #tooDeep(queue: string): string | undefined {
    const most = this.#plan.settings[queue]?.depth?.most;
    if (most === undefined) return undefined;
    const waiting = this.#countLive((row) => row.queue === queue && row.state !== "active");
    // What comes back is not refused; but then there is no room for a new one either.
    return waiting <= most ? undefined : `${waiting} jobs wait in ${queue}, and ${most} may`;
  }

  /** The handler of a job was entered, at this true time, by a process that knows the time as well as that. */
  entered(run: Run, doubt: number): string | undefined {
    const { limitKey } = run.job.row;
    const limit = this.#plan.limits.find(({ key }) => key === limitKey);
    if (!limit?.rate || limitKey === null) return undefined;
    const entries = this.#entries.get(limitKey) ?? [];
    entries.push({ at: run.enteredAt, doubt });
    this.#entries.set(limitKey, entries);
    return tooDense(limit, entries);
  }
}

function isAdmitted({ state }: JobRow): boolean {
  return state === "available" || state === "active";
}

function tooDense(
  limit: LimitOptions,
  entries: readonly { at: number; doubt: number }[],
): string | undefined {
  const rate = limit.rate as NonNullable<LimitOptions["rate"]>;
  const per = Number.parseInt(String(rate.per), 10);
  const last = entries[entries.length - 1] as { at: number; doubt: number };
  const doubt = Math.max(...entries.slice(-rate.limit - 1).map((entry) => entry.doubt));
  const within = entries.filter(({ at }) => at > last.at - per + MOST_SHIFT + SLACK + doubt);
  return within.length <= rate.limit
    ? undefined
    : `${within.length} starts of "${limit.key}" in less than ${per} ms, and ${rate.limit} may be`;
}
