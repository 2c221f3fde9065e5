import { type CronBody, type CronRun, type Firing, fire, withRuns } from "../../core/cron/cron.ts";
import { decide } from "../../core/job/decide.ts";
import type { NewJob } from "../../core/job/envelope.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import { earlier, type Instant } from "../../core/time.ts";
import type { RecordRow, Unit } from "../../ports/store.ts";
import { type Decided, outsidersUnit } from "../commit/decision-unit.ts";
import type { EngineContext } from "../context.ts";
import { announceDecision } from "../operations/operate-job.ts";
import { announceRuns, type CronHost, cronEvents, cronJob, putCron } from "./cron-jobs.ts";

interface DecidedCron {
  readonly name: string;
  readonly body: CronBody;
  readonly jobs: readonly NewJob[];
  readonly runs: readonly CronRun[];
  readonly cancelled: { readonly row: JobRow; readonly decision: Decided } | null;
  readonly unit: Unit;
}

const TRIES = 5;
const AT_ONCE = 25;
const LOOK_AGAIN = 5_000;

/**
 * Fires crons that are due. The job and the record, which moves on to the next instant, are one commit under the
 * record's version: however many engines try, and wherever one of them dies, an instant is acted on once.
 */
export class CronScheduler {
  readonly #parts: EngineContext;
  readonly #host: CronHost;

  constructor(parts: EngineContext, host: CronHost) {
    this.#parts = parts;
    this.#host = host;
  }

  /** A few at a time: after an outage each has much to count, and others want the event loop too. */
  async decide(records: readonly RecordRow[]): Promise<Instant | null> {
    const now = this.#parts.clock.now();
    // What is missed meanwhile is made up for, or not, as each cron says.
    if (this.#parts.queues.isClosed(now)) return now + LOOK_AGAIN;
    let wakeAt: Instant | null = null;
    for (let from = 0; from < records.length; from += AT_ONCE)
      wakeAt = earlier(wakeAt, await this.#decideSome(records.slice(from, from + AT_ONCE)));
    return wakeAt;
  }

  async #decideSome(records: readonly RecordRow[]): Promise<Instant | null> {
    let wakeAt: Instant | null = null;
    let due = records;
    for (let tries = 0; tries < TRIES && due.length > 0; tries++) {
      const round = await this.#round(due);
      wakeAt = earlier(wakeAt, round.wakeAt);
      if (round.refused.length === 0) break;
      // The cron, or the job that was to be cancelled, has changed: what is due by now is decided anew.
      const now = this.#parts.clock.now();
      const again = await this.#parts.store.records.load(round.refused.map(({ key }) => key));
      due = again.filter((record) => record !== null && isDue(record, now)) as RecordRow[];
    }
    return wakeAt;
  }

  async #round(records: readonly RecordRow[]): Promise<{ refused: RecordRow[]; wakeAt: Instant | null }> {
    const { store, clock } = this.#parts;
    const last = await this.#lastJobs(records);
    const now = clock.now();
    const decided = records.map((record) => this.#decideOne(record, last, now));
    const outcomes = await store.commit(
      decided.map(({ unit }) => unit),
      { now },
    );
    let wakeAt: Instant | null = null;
    const refused: RecordRow[] = [];
    for (const [index, one] of decided.entries()) {
      if (!outcomes[index]?.ok) {
        refused.push(records[index] as RecordRow);
        continue;
      }
      if (one.cancelled) announceDecision(this.#parts, one.cancelled.row, one.cancelled.decision, now);
      this.#host.notice(one.jobs);
      announceRuns(this.#parts, one.name, one.body, one.runs);
      wakeAt = earlier(wakeAt, one.body.nextAt);
    }
    return { refused, wakeAt };
  }

  async #lastJobs(records: readonly RecordRow[]): Promise<ReadonlyMap<JobId, JobRow>> {
    const ids = records.flatMap(({ body }) => {
      const { rule, lastJob } = body as unknown as CronBody;
      return lastJob === null || rule.overlap === "allow" ? [] : [lastJob];
    });
    if (ids.length === 0) return new Map();
    const rows = await this.#parts.store.jobs.load(ids);
    return new Map(rows.flatMap((row) => (row ? [[row.id, row] as const] : [])));
  }

  #decideOne(record: RecordRow, last: ReadonlyMap<JobId, JobRow>, now: Instant): DecidedCron {
    const { key, version } = record;
    const before = record.body as unknown as CronBody;
    const row = before.lastJob === null ? undefined : last.get(before.lastJob);
    const isLastLive = row !== undefined && !isTerminal(row.state);
    const firing = fire(before, isLastLive, now);
    const cancel =
      firing.isPreviousCancelled && row ? decide(row, { type: "cancel" }, now, this.#parts.random) : null;
    const { jobs, runs } = this.#jobs(key[1], before, firing, now);
    const body: CronBody = {
      ...before,
      nextAt: firing.nextAt,
      actedUpTo: firing.actedUpTo,
      lastJob: jobs.at(-1)?.id ?? before.lastJob,
      runs: withRuns(before, runs),
    };
    const effects = [
      ...jobs.map((job) => ({ enqueue: job })),
      putCron(key[1], body),
      ...cronEvents(this.#parts, key[1], body, runs),
    ];
    const when = [{ record: key, version }];
    const cancelled = row && cancel?.ok ? { row, decision: cancel } : null;
    const told = cancelled
      ? this.#parts.recorder.recorded(cancelled.row, cancelled.decision, now)
      : undefined;
    const unit = cancelled
      ? { ...outsidersUnit(cancelled.row, cancelled.decision, { effects }, told), when }
      : { when, effects };
    return { name: key[1], body, jobs, runs, cancelled, unit };
  }

  /** What cannot be made from what is stored is skipped and said, or it would be tried for ever. */
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

function isDue({ body }: RecordRow, now: Instant): boolean {
  const { nextAt, pausedAt } = body as unknown as CronBody;
  return pausedAt === null && nextAt !== null && nextAt <= now;
}
