import { type CronBody, type CronRun, type Firing, fire, withRuns } from "../../core/cron/cron.ts";
import { CurfewError } from "../../core/errors.ts";
import { cellOfId, cellOfName, homeOf } from "../../core/home/cell.ts";
import { decide } from "../../core/job/decide/decide.ts";
import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import type { Instant } from "../../core/time.ts";
import type { Outcome, RecordRow, Unit } from "../../ports/store.ts";
import { commitJobs, STALE_TRIES } from "../commit/commit.ts";
import type { StoredRecord } from "../commit/record-kind.ts";
import type { DecidedJob } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { rowsById } from "../find/find-jobs.ts";
import { announceRuns, CRONS, type CronDeps, cronEvents, cronJob, putCron } from "./cron-jobs.ts";

type StoredCron = StoredRecord<CronBody>;

interface DecidedCron {
  readonly name: string;
  readonly body: CronBody;
  readonly jobs: readonly NewJob[];
  readonly runs: readonly CronRun[];
  /** The unit that stores the jobs and the cron, or the cancelled job together with them. */
  readonly write: Unit | DecidedJob;
}

const CRONS_AT_ONCE = 25;
const MAINTENANCE_POLL = 5_000;

/**
 * Fires due crons. One commit, under the record's version, stores the job and moves the record to its next instant:
 * each instant fires once, even if several engines try or one crashes. No changeRecord: all crons of a sweep share a
 * call.
 */
export class CronScheduler {
  readonly #context: EngineContext;
  readonly #host: CronDeps;

  constructor(context: EngineContext, host: CronDeps) {
    this.#context = context;
    this.#host = host;
  }

  /** In small groups: after an outage each cron has many missed instants to count, which blocks the event loop. */
  async decide(records: readonly RecordRow[]): Promise<void> {
    const { clock, queues, wakeSweepAt } = this.#context;
    const now = clock.now();
    // Each cron's `missed` setting says whether its missed instants fire later.
    if (queues.isClosed(now)) return wakeSweepAt(now + MAINTENANCE_POLL);
    for (let from = 0; from < records.length; from += CRONS_AT_ONCE)
      await this.#decideSome(records.slice(from, from + CRONS_AT_ONCE).map(CRONS.read));
  }

  async #decideSome(crons: readonly StoredCron[]): Promise<void> {
    const { clock, store } = this.#context;
    let due = crons;
    for (let tries = 0; tries < STALE_TRIES && due.length > 0; tries++) {
      const refused = await this.#round(due);
      if (refused.length === 0) return;
      // The cron, or the job to cancel, has changed: decide again if the cron is still due.
      const now = clock.now();
      const again = await store.records.load(refused.map(({ name }) => CRONS.key(name)));
      due = again.flatMap((row) => (row ? [CRONS.read(row)] : [])).filter(({ body }) => isDue(body, now));
    }
  }

  /** Returns the crons whose commit was refused. */
  async #round(crons: readonly StoredCron[]): Promise<readonly StoredCron[]> {
    const last = await this.#lastJobs(crons);
    // A day that was closed a moment ago, by another process, must not fire.
    if (crons.some(({ body }) => body.rule.schedule.calendar !== undefined))
      await this.#context.calendars.refresh();
    const now = this.#context.clock.now();
    const decided = crons.map((cron) => this.#decideOne(cron, last, now));
    const outcomes =
      this.#context.store.capabilities.homes === 1
        ? await commitJobs(
            this.#context,
            decided.map(({ write }) => write),
          )
        : await this.#commitApart(decided);
    for (const [index, { name, body, jobs, runs }] of decided.entries()) {
      if (!outcomes[index]?.ok) continue;
      this.#host.notice(jobs);
      announceRuns(this.#context, name, body, runs);
      if (body.nextAt !== null) this.#context.wakeSweepAt(body.nextAt);
    }
    return crons.filter((_, index) => !outcomes[index]?.ok);
  }

  /** A previous job in another home than its cron is cancelled first, by a unit of its own. */
  async #commitApart(decided: readonly DecidedCron[]): Promise<Outcome[]> {
    const { homes } = this.#context.store.capabilities;
    const isApart = ({ name, write }: DecidedCron) =>
      "decision" in write &&
      homeOf(cellOfId(write.row.id), homes) !==
        homeOf(cellOfName((this.#context.nextId.namePrefix ?? "") + name), homes);
    const apart = decided.filter(isApart);
    const cancelled = await commitJobs(
      this.#context,
      apart.map(({ write }) => ({ ...(write as DecidedJob), when: undefined, effects: undefined })),
    );
    const refused = new Map(apart.map((one, index) => [one, cancelled[index] as Outcome]));
    const writes = decided.map((one) => {
      const { when, effects } = one.write;
      return refused.has(one) ? { ...(when && { when }), ...(effects && { effects }) } : one.write;
    });
    const sent = decided.map((one) => refused.get(one)?.ok ?? true);
    const outcomes = await commitJobs(
      this.#context,
      writes.filter((_, index) => sent[index]),
    );
    return decided.map((one, index) => (sent[index] ? outcomes.shift() : refused.get(one)) as Outcome);
  }

  async #lastJobs(crons: readonly StoredCron[]): Promise<ReadonlyMap<JobId, JobRow>> {
    const ids = crons.flatMap(({ body: { rule, lastJob } }) =>
      lastJob === null || rule.overlap === "allow" ? [] : [lastJob],
    );
    return rowsById(this.#context.store, ids);
  }

  #decideOne(cron: StoredCron, last: ReadonlyMap<JobId, JobRow>, now: Instant): DecidedCron {
    const { name, version, body: before } = cron;
    const row = before.lastJob === null ? undefined : last.get(before.lastJob);
    const isLastLive = row !== undefined && !isTerminal(row.state);
    const firing = this.#fire(name, before, isLastLive, now);
    const cancel =
      firing.isPreviousCancelled && row ? decide(row, { type: "cancel" }, now, this.#context.random) : null;
    const { jobs, runs } = this.#jobs(name, before, firing, now);
    const body: CronBody = {
      ...before,
      nextAt: firing.nextAt,
      actedUpTo: firing.actedUpTo,
      lastJob: jobs.at(-1)?.id ?? before.lastJob,
      runs: withRuns(before, runs),
    };
    const effects = [
      ...jobs.map((job) => ({ enqueue: job })),
      putCron(name, body),
      ...cronEvents(this.#context, name, body, runs),
    ];
    const when = [CRONS.guard(name, version)];
    const write: Unit | DecidedJob =
      row && cancel?.ok
        ? { row, decision: cancel, at: now, by: "outsider", when, effects }
        : { when, effects };
    return { name, body, jobs, runs, write };
  }

  /** A cron whose calendar is gone fires at no instant until the calendar is stored again. */
  #fire(name: string, body: CronBody, isLastLive: boolean, now: Instant): Firing {
    try {
      return fire(body, isLastLive, now, this.#context.calendars);
    } catch (error) {
      if (!(error instanceof CurfewError) || error.code !== "unknown_calendar") throw error;
      const message = "the calendar of this cron is gone; the cron rests until the calendar is stored again";
      this.#context.logger.error({ error, cron: name }, message);
      const { actedUpTo } = body;
      return { instants: [], isPreviousCancelled: false, skipped: [], nextAt: null, actedUpTo };
    }
  }

  /** Skips and logs a job that cannot be made from the stored cron; otherwise it would be tried for ever. */
  #jobs(name: string, body: CronBody, firing: Firing, now: Instant): { jobs: NewJob[]; runs: CronRun[] } {
    const jobs: NewJob[] = [];
    const runs: CronRun[] = [...firing.skipped];
    for (const instant of firing.instants) {
      try {
        const job = cronJob({ ...this.#host.context(), now }, name, body, instant);
        const cancelled =
          firing.isPreviousCancelled && body.lastJob !== null ? { cancelled: body.lastJob } : {};
        jobs.push(job);
        runs.push({ for: instant, at: now, job: job.id, ...cancelled });
      } catch (error) {
        this.#context.logger.error(
          { error, cron: name },
          "cannot make the job of this cron; this instant is skipped: put the cron again with valid options",
        );
        runs.push({ for: instant, at: now, skipped: "failed", count: 1 });
      }
    }
    return { jobs, runs };
  }
}

function isDue({ nextAt, pausedAt }: CronBody, now: Instant): boolean {
  return pausedAt === null && nextAt !== null && nextAt <= now;
}
