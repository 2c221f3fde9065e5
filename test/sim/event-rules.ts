import type { JobId } from "../../src/core/job/job.ts";
import { LIFECYCLE_EVENTS } from "../../src/core/job/lifecycle-events.ts";
import type { JournalEvent } from "../../src/index.ts";
import { isReturn } from "./change-rules.ts";
import { hasEnded } from "./ledger.ts";
import { short } from "./trace.ts";
import type { Change } from "./watched-store.ts";

/** What each change of state that the store has seen must have told, and nothing else may. */
const TOLD_BY = {
  completed: "job.completed",
  cancelled: "job.cancelled",
  discarded: "job.discarded",
  retryable: "job.retrying",
} as const;

const COUNTED: ReadonlySet<string> = new Set([...Object.values(TOLD_BY), "job.enqueued", "job.retried"]);
const LIFECYCLE: ReadonlySet<string> = new Set(LIFECYCLE_EVENTS);
const ENDS: ReadonlySet<string> = new Set(["job.completed", "job.cancelled", "job.discarded"]);
const BEGINS: ReadonlySet<string> = new Set(["job.enqueued", "job.scheduled"]);
/** What ends an attempt that was started. */
const LEAVES: ReadonlySet<string> = new Set([
  "job.completed",
  "job.cancelled",
  "job.retrying",
  "job.discarded",
  "job.released",
  "job.snoozed",
  "job.visibility_timeout",
  "job.claim_expired",
]);

/** Holds the recorded stream against what the store did: every commit is told once, in order, and nothing else is. */
export class EventRules {
  readonly #expected = new Map<string, number>();
  /** Jobs whose home forgot what it had recorded about them. */
  readonly #forgotten = new Set<JobId>();

  forget(id: JobId): void {
    this.#forgotten.add(id);
  }

  changed(change: Change): void {
    const { before, after } = change;
    if (isReturn(change)) return;
    if (before === null) this.#expect(after.id, "job.enqueued");
    else if (hasEnded(before.state) && !hasEnded(after.state)) this.#expect(after.id, "job.retried");
    else if (before.state !== after.state && after.state in TOLD_BY)
      this.#expect(after.id, TOLD_BY[after.state as keyof typeof TOLD_BY]);
  }

  #expect(id: JobId, name: string): void {
    const key = `${id} ${name}`;
    this.#expected.set(key, (this.#expected.get(key) ?? 0) + 1);
  }

  /** What is wrong with the stream as a whole. */
  problems(events: readonly JournalEvent[]): string[] {
    const told = events.filter(
      ({ name, job = "" }) =>
        (LIFECYCLE.has(name) || name === "job.heartbeat") && !this.#forgotten.has(job as JobId),
    );
    return [...this.#miscounted(told), ...misordered(told)];
  }

  #miscounted(told: readonly JournalEvent[]): string[] {
    const counts = new Map<string, number>();
    for (const event of told) {
      const name = event.name === "job.scheduled" ? "job.enqueued" : event.name;
      if (COUNTED.has(name))
        counts.set(`${event.job} ${name}`, (counts.get(`${event.job} ${name}`) ?? 0) + 1);
    }
    const keys = new Set([...this.#expected.keys(), ...counts.keys()]);
    return [...keys].flatMap((key) => {
      if (this.#forgotten.has(key.split(" ")[0] as JobId)) return [];
      const [wanted, found] = [this.#expected.get(key) ?? 0, counts.get(key) ?? 0];
      return wanted === found ? [] : [`${key}: ${wanted} committed, ${found} told`];
    });
  }
}

function misordered(told: readonly JournalEvent[]): string[] {
  const problems: string[] = [];
  const lives = new Map<string, { isRunning: boolean; isOver: boolean }>();
  for (const { job = "", name } of told) {
    const life = lives.get(job);
    if (BEGINS.has(name)) {
      if (life && !life.isOver) problems.push(`job ${short(job)}: ${name} in the middle of its life`);
      lives.set(job, { isRunning: false, isOver: false });
      continue;
    }
    if (!life) problems.push(`job ${short(job)}: ${name} before it was enqueued`);
    else {
      if (life.isOver && name !== "job.retried") problems.push(`job ${short(job)}: ${name} after its end`);
      if (name === "job.started" && life.isRunning) problems.push(`job ${short(job)}: started twice at once`);
      if (name === "job.heartbeat" && !life.isRunning)
        problems.push(`job ${short(job)}: a sign of life while it did not run`);
      if (name === "job.started") life.isRunning = true;
      if (LEAVES.has(name)) life.isRunning = false;
      if (name !== "job.heartbeat") life.isOver = ENDS.has(name);
    }
  }
  return problems;
}
