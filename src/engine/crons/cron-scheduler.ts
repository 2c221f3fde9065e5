import { type CronBody, type CronRun, type Firing, fire, withRuns } from "../../core/cron/cron.ts";
import { decide } from "../../core/job/decide.ts";
import type { NewJob } from "../../core/job/envelope.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import type { Instant } from "../../core/time.ts";
import type { RecordRow, Unit } from "../../ports/store.ts";
import { commitJobs, STALE_TRIES } from "../commit/commit.ts";
import type { StoredRecord } from "../commit/records.ts";
import type { DecidedJob } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { announceRuns, CRONS, type CronHost, cronEvents, cronJob, putCron } from "./cron-jobs.ts";

type StoredCron = StoredRecord<CronBody>;

interface DecidedCron {
  readonly name: string;
  readonly body: CronBody;
  readonly jobs: readonly NewJob[];
  readonly runs: readonly CronRun[];
  /** The unit that stores all of it, or the job that is cancelled with it. */
  readonly write: Unit | DecidedJob;
}

const AT_ONCE = 25;
const LOOK_AGAIN = 5_000;

/**
 * Fires crons that are due. The job and the record, which moves on to the next instant, are one commit under the
 * record's version: however many engines try, and wherever one of them dies, an instant is acted on once. No
 * changeRecord: all crons of a sweep share a call.
 */
export class CronScheduler {
  readonly #parts: EngineContext;
  readonly #host: CronHost;

  constructor(parts: EngineContext, host: CronHost) {
    this.#parts = parts;
    this.#host = host;
  }

  /** A few at a time: after an outage each has much to count, and others want the event loop too. */
  async decide(records: readonly RecordRow[]): Promise<void> {
    const { clock, queues, wakeSweepAt } = this.#parts;
    const now = clock.now();
    // Whether missed instants are made up for later is a setting of each cron.
    if (queues.isClosed(now)) return wakeSweepAt(now + LOOK_AGAIN);
    for (let from = 0; from < records.length; from += AT_ONCE)
      await this.#decideSome(records.slice(from, from + AT_ONCE).map(CRONS.read));
  }

  async #decideSome(crons: readonly StoredCron[]): Promise<void> {
    const { clock, store } = this.#parts;
    let due = crons;
    for (let tries = 0; tries < STALE_TRIES && due.length > 0; tries++) {
      const refused = await this.#round(due);
      if (refused.length === 0) return;
      // The cron, or the job that was to be cancelled, has changed: decide again on what is due by now.
      const now = clock.now();
      const again = await store.records.load(refused.map(({ name }) => CRONS.key(name)));
      due = again.flatMap((row) => (row ? [CRONS.read(row)] : [])).filter(({ body }) => isDue(body, now));
    }
  }

  /** Returns the crons whose commit was refused. */
  async #round(crons: readonly StoredCron[]): Promise<readonly StoredCron[]> {
    const last = await this.#lastJobs(crons);
    const now = this.#parts.clock.now();
    const decided = crons.map((cron) => this.#decideOne(cron, last, now));
    const outcomes = await commitJobs(
      this.#parts,
      decided.map(({ write }) => write),
    );
    for (const [index, { name, body, jobs, runs }] of decided.entries()) {
      if (!outcomes[index]?.ok) continue;
      this.#host.notice(jobs);
      announceRuns(this.#parts, name, body, runs);
      if (body.nextAt !== null) this.#parts.wakeSweepAt(body.nextAt);
    }
    return crons.filter((_, index) => !outcomes[index]?.ok);
  }

  async #lastJobs(crons: readonly StoredCron[]): Promise<ReadonlyMap<JobId, JobRow>> {
    const ids = crons.flatMap(({ body: { rule, lastJob } }) =>
      lastJob === null || rule.overlap === "allow" ? [] : [lastJob],
    );
    if (ids.length === 0) return new Map();
    const rows = await this.#parts.store.jobs.load(ids);
    return new Map(rows.flatMap((row) => (row ? [[row.id, row] as const] : [])));
  }

  #decideOne(cron: StoredCron, last: ReadonlyMap<JobId, JobRow>, now: Instant): DecidedCron {
    const { name, version, body: before } = cron;
    const row = before.lastJob === null ? undefined : last.get(before.lastJob);
    const isLastLive = row !== undefined && !isTerminal(row.state);
    const firing = fire(before, isLastLive, now);
    const cancel =
      firing.isPreviousCancelled && row ? decide(row, { type: "cancel" }, now, this.#parts.random) : null;
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
      ...cronEvents(this.#parts, name, body, runs),
    ];
    const when = [CRONS.guard(name, version)];
    const write: Unit | DecidedJob =
      row && cancel?.ok
        ? { row, decision: cancel, at: now, by: "outsider", when, effects }
        : { when, effects };
    return { name, body, jobs, runs, write };
  }

  /** Skips and logs a job that cannot be made from what is stored; otherwise it would be tried for ever. */
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
        this.#parts.logger.error({ error, cron: name }, "the job of a cron cannot be made");
        runs.push({ for: instant, at: now, skipped: "failed", count: 1 });
      }
    }
    return { jobs, runs };
  }
}

function isDue({ nextAt, pausedAt }: CronBody, now: Instant): boolean {
  return pausedAt === null && nextAt !== null && nextAt <= now;
}
