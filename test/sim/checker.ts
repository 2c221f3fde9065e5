import type { JobId, JobRow } from "../../src/core/job/job.ts";
import type { BeatAnswer, BeatRequest, ClaimRequest, Outcome, Unit } from "../../src/ports/store.ts";
import type { HomeBeat } from "../../src/stores/homes/home-store.ts";
import type { StoreCall } from "../../src/testing/faulty-store.ts";
import { CHANGE_RULES, isReturn, judgedAttempt, type Seen, settles } from "./change-rules.ts";
import { EventRules } from "./event-rules.ts";
import { FairRules } from "./fair-rules.ts";
import { entryProblem, lateSignal, signalProblem, untoldVerdict } from "./handler-rules.ts";
import { type Claim, hasEnded, type JobLedger, newJobLedger, type Run } from "./ledger.ts";
import { LimitRules } from "./limit-rules.ts";
import type { Machine } from "./machine.ts";
import type { ReplyObserver, Times } from "./network.ts";
import type { Expected } from "./oracle.ts";
import type { Plan } from "./plan.ts";
import { orphansOf, unsettledJobs } from "./settle-rule.ts";
import { short, type Trace } from "./trace.ts";
import type { Change, StoreObserver } from "./watched-store.ts";

export interface Violation {
  readonly rule: string;
  readonly says: string;
  readonly at: number;
}

interface CheckerOptions {
  /** True time: what an observer outside of the world would read. */
  readonly now: () => number;
  readonly plan: Plan;
  /** The number of homes of the store. */
  readonly homes: number;
  readonly trace: Trace;
  /** When a call of this process to the store last had trouble. */
  readonly troubledAt: (machine: Machine) => number;
}

/**
 * Watches a world from outside and knows what must never happen in it. It sees what the store did, what reached
 * which process, and what handlers saw; it asks the engine nothing.
 */
export class Checker implements StoreObserver, ReplyObserver {
  readonly jobs = new Map<JobId, JobLedger>();
  readonly violations: Violation[] = [];
  readonly runs: Run[] = [];
  /** What was expected of each enqueue, by the number in its payload. */
  readonly expected = new Map<number, Expected>();
  readonly events = new EventRules();
  readonly fair: FairRules;
  /** How often a job came to each end. */
  readonly endCounts = new Map<string, number>();
  readonly #options: CheckerOptions;
  readonly #limits: LimitRules;
  readonly #changes: Change[] = [];
  readonly #held = new Map<Machine, Map<JobId, Claim>>();
  readonly #workerSeenAt = new Map<string, number>();
  /** Every end that a job of this id has come to; ids of the user's own can be used again. */
  readonly #ends = new Set<string>();

  constructor(options: CheckerOptions) {
    this.#options = options;
    this.#limits = new LimitRules(options.plan, this.jobs);
    this.fair = new FairRules(options.plan, options.homes, this.jobs);
  }

  get now(): number {
    return this.#options.now();
  }

  report(rule: string, says: string): void {
    this.violations.push({ rule, says, at: this.#options.now() });
    this.#options.trace.add("CHECKER", `${rule}: ${says}`);
  }

  // What the store did.

  changed(change: Change): void {
    const { after, before, isGone } = change;
    this.events.changed(change);
    this.fair.changed(before, isGone ? null : after);
    const now = this.#options.now();
    const job = this.#jobOf(change);
    if (!job) return;
    const claim = before ? job.claims.get(before.fence) : undefined;
    const known = before?.errors ?? [];
    const errors =
      after.errors === before?.errors ? [] : (after.errors ?? []).filter((error) => !known.includes(error));
    const seenAt = this.#workerSeenAt.get(before?.worker ?? "") ?? 0;
    const troubledAt = claim ? this.#options.troubledAt(claim.by) : 0;
    const seen: Seen = { change, job, now, claim, errors, seenAt, troubledAt };
    for (const { name, check } of job.isForgotten ? [] : CHANGE_RULES) {
      const problem = check(seen);
      if (problem) this.report(name, `job ${short(after.id)}: ${problem}`);
    }
    this.#trace(
      change,
      errors.map((error) => error.type),
    );
    this.#checkRevision(job, change);
    this.#remember(job, change, claim);
    job.row = after;
    job.isGone = isGone;
    job.highestFence = Math.max(job.highestFence, after.fence);
    this.#changes.push(change);
  }

  /** Limits are looked at once all that a call did is seen: one job leaves its place to another in one commit. */
  looked(): void {
    for (const change of this.#changes) {
      const problem = this.#limits.changed(change);
      if (problem) this.report("limits are kept", problem);
    }
    this.#changes.length = 0;
    this.fair.looked();
  }

  #jobOf({ before, after }: Change): JobLedger | undefined {
    const known = this.jobs.get(after.id);
    // A job that was dropped may be enqueued again under the id that its user gave it: that is another job.
    if (known && before !== null) return known;
    const { n } = JSON.parse(after.payload) as { n: number };
    const expected = this.expected.get(n);
    if (!expected) {
      this.report("the world is sound", `a job with the unknown payload ${n} appeared`);
      return undefined;
    }
    const job = newJobLedger(after, expected, known?.revisions);
    if (known) {
      job.isAcknowledged = known.isAcknowledged;
      job.isForgotten = known.isForgotten;
      job.isExtended = known.isExtended;
      job.retriesAsked = known.retriesAsked;
    }
    this.jobs.set(after.id, job);
    return job;
  }

  /** Else a decision on an image that a home forgot could be written over another one. */
  #checkRevision({ id, revisions }: JobLedger, { before, after, isGone }: Change): void {
    // A job that is enqueued again after it was deleted is another one, and begins at 0.
    if (isGone) revisions.clear();
    if (isGone || before === null || before.rev === after.rev) return;
    if (revisions.has(after.rev))
      this.report("no revision is used again", `job ${short(id)} got revision ${after.rev} twice`);
    revisions.add(after.rev);
  }

  #remember(job: JobLedger, change: Change, claim: Claim | undefined): void {
    const { before, after } = change;
    if (claim?.fence === after.fence) {
      claim.startedAt = after.startedAt;
      if (change.by === claim.by) claim.ownStallAt = after.stallAt;
    }
    if (settles(change) && claim) claim.settledAt = this.#options.now();
    if (change.call === "sweep") job.sweptStallAt = after.stallAt;
    if (change.call === "claim") job.sweptStallAt = null;
    if (isReturn(change)) job.returns += 1;
    if (hasEnded(after.state)) this.#ends.add(`${job.id} ${after.state}`);
    if (hasEnded(after.state) && before?.state !== after.state)
      this.endCounts.set(after.state, (this.endCounts.get(after.state) ?? 0) + 1);
    const judged = judgedAttempt(change);
    if (judged !== null) job.judged.add(judged);
    if (after.state === "cancelled" && before?.state !== "cancelled") job.cancelledAt = this.#options.now();
    if (before && hasEnded(before.state) && !hasEnded(after.state)) {
      job.lives += 1;
      job.returns = 0;
      job.judged.clear();
      job.entries.clear();
      job.cancelledAt = undefined;
    }
  }

  #trace({ by, call, before, after, isGone }: Change, errors: readonly string[]): void {
    const { trace } = this.#options;
    if (!trace.isKept) return;
    const move =
      before === null
        ? `new ${after.state}`
        : before.state === after.state
          ? after.state
          : `${before.state} -> ${after.state}`;
    const more = [
      `attempt ${after.attempt}`,
      after.expiredClaims > 0 && `expiredClaims ${after.expiredClaims}`,
      errors.length > 0 && errors.join("+"),
      isGone && "gone",
    ].filter(Boolean);
    trace.add("store", `${short(after.id)} ${move} (${more.join(", ")}) by ${by.name} ${call}`);
  }

  claimed(by: Machine, { turns }: ClaimRequest, rows: readonly JobRow[]): void {
    const now = this.#options.now();
    if (turns?.rounds) this.fair.inRounds += rows.length;
    const unfair = this.fair.claimed(by, rows);
    if (unfair) this.report("fair keys take turns", unfair);
    for (const row of rows) {
      const job = this.jobs.get(row.id);
      if (!job) continue;
      if (job.row.state !== "available" && !job.isForgotten)
        this.report(
          "no job is claimed twice",
          `job ${short(row.id)} was handed out while it was ${job.row.state}`,
        );
      if (row.fence <= job.highestFence && !job.isForgotten)
        this.report("fences only grow", `job ${short(row.id)} was claimed under the old fence ${row.fence}`);
      job.claims.set(row.fence, {
        fence: row.fence,
        by,
        row,
        claimedAt: now,
        confirmedAt: now,
        confirmation: undefined,
        answeredAt: undefined,
        isLostHeard: false,
        isHeard: false,
        startedAt: null,
        ownStallAt: null,
        settledAt: undefined,
        run: undefined,
      });
    }
  }

  beaten(_by: Machine, { worker }: HomeBeat, _answers: readonly BeatAnswer[]): void {
    if (worker) this.#workerSeenAt.set(worker.id, (worker.body as { seenAt: number }).seenAt);
  }

  committed(_by: Machine, units: readonly Unit[], outcomes: readonly Outcome[]): void {
    for (const [index, { job: write, effects = [] }] of units.entries()) {
      if (!outcomes[index]?.ok) continue;
      // A worker that says goodbye will not beat again, so nobody has to wait for its silence to end.
      for (const effect of effects)
        if ("delete" in effect && effect.delete[0] === "worker") this.#workerSeenAt.delete(effect.delete[1]);
      if (!write) continue;
      const job = this.jobs.get(write.id);
      if (job && write.fence !== job.row.fence)
        this.report(
          "old fences change nothing",
          `a write under fence ${write.fence} was taken at ${job.row.fence}`,
        );
      // Outsiders name the revision they have read; without one it is the attempt itself that still writes.
      const isForgotten = job?.isForgotten ?? false;
      if (write.rev === undefined && !isForgotten && job?.claims.get(write.fence)?.settledAt !== undefined)
        this.report(
          "nothing is written after the verdict",
          `job ${short(write.id)} under fence ${write.fence}`,
        );
    }
  }

  // What reached a process.

  heard(by: Machine, call: StoreCall, request: unknown, answer: unknown, times: Times): void {
    if (call === "clock") by.heardClock(times.heardAt, times.heardAt - times.sentAt);
    else if (call === "jobs.claim") {
      this.fair.heard(by, answer as JobRow[]);
      for (const row of answer as JobRow[]) {
        const claim = this.jobs.get(row.id)?.claims.get(row.fence);
        if (!claim) continue;
        claim.isHeard = true;
        this.#heldBy(by).set(row.id, claim);
      }
    } else if (call === "jobs.beat") {
      const { jobs } = request as BeatRequest;
      if (this.#options.homes === 1) this.#beaten(by, jobs, answer as BeatAnswer[], times);
      // With homes the engine does not know it yet, and if another home fails, it never does.
      else for (const { id } of jobs) this.#answered(by, id, times.doneAt);
    } else if (call === "commit") {
      for (const [index, { job }] of (request as readonly Unit[]).entries()) {
        const outcome = (answer as Outcome[])[index] as Outcome;
        // A stale revision says nothing about the claim: it may well hold.
        const isKnown = outcome.ok || outcome.because === "lost" || outcome.because === "gone";
        // Of an operator's call, which names a revision, the worker of the same process hears nothing.
        const isOfHolder = job?.rev === undefined || outcome.ok;
        if (job && isKnown && isOfHolder) this.#confirmed(by, job.id, job.fence, outcome.ok, times);
      }
    }
  }

  /** With homes the engine hears nothing of a beat before all of them have answered: that is when it may enter the job. */
  heardFromAll(
    by: Machine,
    { jobs }: BeatRequest,
    answers: readonly BeatAnswer[],
    times: Pick<Times, "sentAt" | "heardAt">,
  ): void {
    for (const [index, job] of jobs.entries()) {
      const doneAt = this.#heldBy(by).get(job.id)?.answeredAt ?? 0;
      const isOfThisBeat = doneAt >= times.sentAt;
      if (isOfThisBeat) this.#beaten(by, [job], answers.slice(index, index + 1), { ...times, doneAt });
    }
  }

  #answered(by: Machine, id: JobId, doneAt: number): void {
    const claim = this.#heldBy(by).get(id);
    if (claim) claim.answeredAt = doneAt;
  }

  #beaten(by: Machine, jobs: BeatRequest["jobs"], answers: readonly BeatAnswer[], times: Times): void {
    for (const [index, { id, fence }] of jobs.entries())
      this.#confirmed(by, id, fence, typeof answers[index] === "string", times);
  }

  #confirmed(by: Machine, id: JobId, fence: number, holds: boolean, times: Times): void {
    const claim = this.#heldBy(by).get(id);
    if (claim?.fence !== fence) return;
    if (holds) {
      claim.confirmedAt = Math.max(claim.confirmedAt, times.doneAt);
      claim.confirmation = times;
    } else claim.isLostHeard = true;
  }

  #heldBy(machine: Machine): Map<JobId, Claim> {
    const held = this.#held.get(machine) ?? new Map<JobId, Claim>();
    this.#held.set(machine, held);
    return held;
  }

  // What handlers saw.

  entered(
    by: Machine,
    entry: Pick<Run, "attempt" | "deadline" | "isListening"> & { readonly id: JobId },
  ): Run | undefined {
    const now = this.#options.now();
    const job = this.jobs.get(entry.id);
    const claim = this.#heldBy(by).get(entry.id);
    if (!job || !claim) {
      this.report("handlers run under a claim", `${by.name} entered job ${short(entry.id)} without one`);
      return undefined;
    }
    const run: Run = {
      job,
      claim,
      attempt: entry.attempt,
      deadline: entry.deadline,
      isListening: entry.isListening,
      enteredAt: now,
      clockDoubt: by.clockDoubt,
      beats: [now],
      signalledAt: undefined,
      signalKind: undefined,
      cleanups: 0,
      endedAt: undefined,
      hasReturned: false,
    };
    job.entries.set(run.attempt, (job.entries.get(run.attempt) ?? 0) + 1);
    const dense = this.#limits.entered(run, by.clockDoubt);
    if (dense) this.report("limits are kept", dense);
    const problem = job.isForgotten ? undefined : entryProblem(run);
    if (problem) this.report(problem.rule, `job ${short(job.id)} in ${by.name}: ${problem.says}`);
    claim.run = run;
    this.runs.push(run);
    return run;
  }

  beat(run: Run): void {
    run.beats.push(this.#options.now());
  }

  signalled(run: Run, reason: unknown): void {
    const kind = String((reason as { kind?: unknown })?.kind);
    run.signalKind ??= kind;
    run.signalledAt ??= this.#options.now();
    this.#options.trace.add(run.claim.by.name, `${short(run.job.id)} hears ${kind}`);
    const problem = signalProblem(run, kind) ?? lateSignal(run, run.signalledAt);
    if (problem && !run.job.isForgotten)
      this.report("soft signals come on time, never early, once", `job ${short(run.job.id)}: ${problem}`);
  }

  cleanedUp(run: Run): void {
    run.cleanups += 1;
    if (run.cleanups > 1)
      this.report(
        "soft signals come on time, never early, once",
        `job ${short(run.job.id)}: a cleanup hook ran twice`,
      );
  }

  ended(run: Run, hasReturned: boolean): void {
    run.endedAt = this.#options.now();
    run.hasReturned = hasReturned;
    this.#checkSignal(run, run.endedAt);
  }

  #checkSignal(run: Run, now: number): void {
    if (run.job.isForgotten) return;
    const late = lateSignal(run, now);
    if (late)
      this.report("soft signals come on time, never early, once", `job ${short(run.job.id)}: ${late}`);
    const untold = untoldVerdict(run, now, this.#options.troubledAt(run.claim.by));
    if (untold) this.report("a handler hears of its verdict", `job ${short(run.job.id)}: ${untold}`);
  }

  /** The engine announced an end: the commit must have come before it (SEMANTICS 3.12). */
  told(name: string, id: JobId): void {
    const state = name.slice("job.".length);
    if (!this.#ends.has(`${id} ${state}`))
      this.report(
        "events follow their commit",
        `${name} was announced for job ${short(id)}, which never was ${state}`,
      );
  }

  /** The home of a job forgot what had happened to it: it is as it was before, or gone. Limits are counted anew. */
  forgot(id: JobId, row: JobRow | null): void {
    const job = this.jobs.get(id);
    if (!job) return;
    this.fair.changed(job.row, row);
    job.isForgotten = true;
    job.isGone = row === null;
    if (row) job.row = row;
    this.events.forget(id);
    this.#limits.forget(job.row.limitKey);
    this.#options.trace.add("store", `${short(id)} is ${row?.state ?? "gone"} again`);
  }

  /** The home of these workers forgot when it last heard of them. */
  forgotWorkers(isForgotten: (worker: string) => boolean): void {
    for (const id of [...this.#workerSeenAt.keys()]) if (isForgotten(id)) this.#workerSeenAt.delete(id);
  }

  // What callers were promised.

  acknowledged(id: JobId): void {
    const job = this.jobs.get(id);
    if (job) job.isAcknowledged = true;
    else
      this.report(
        "no job is lost",
        `the enqueue of job ${short(id)} was acknowledged, but the store never had it`,
      );
  }

  /** When everything should be over: what is still alive is named. */
  unsettled(): JobLedger[] {
    return unsettledJobs([...this.jobs.values()], this.#options.plan);
  }

  /** Jobs that nothing but a cancel ends. */
  orphans(): JobLedger[] {
    return orphansOf([...this.jobs.values()]);
  }

  /** Running handlers of living processes that should have heard their signal by now. */
  checkSignals(): void {
    for (const run of this.runs) {
      if (run.endedAt !== undefined || run.claim.by.isDead) continue;
      this.#checkSignal(run, this.#options.now());
    }
  }
}
