import { type By, parseBy } from "../../core/audit/audit-entry.ts";
import {
  CRON_KEYS,
  type CronBody,
  type CronJob,
  type CronMissed,
  type CronOptions,
  type CronOverlap,
  type CronRun,
  changedCron,
  newCron,
  parseCron,
  resumedCron,
  withRuns,
} from "../../core/cron/cron.ts";
import { type CronClosed, parseSchedule, type ScheduleOptions } from "../../core/cron/expression.ts";
import { type CronInstant, preview } from "../../core/cron/instants-of.ts";
import { CurfewError, checkCount, checkName, refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { parseRedact } from "../../core/job/documents/redaction.ts";
import {
  type EnqueueContext,
  type EnqueueOptions,
  type NewJob,
  prepareJob,
  preparePayload,
} from "../../core/job/enqueue/envelope.ts";
import type { JobId } from "../../core/job/job.ts";
import { type AnyDefinition, assertDefinition, type JobDefinition } from "../../core/job/job-definition.ts";
import { portableDefinition, portableOptions } from "../../core/job/transfer/portable.ts";
import { keysOf } from "../../core/option-keys.ts";
import type { Path } from "../../core/redact.ts";
import type { Json } from "../../core/schema.ts";
import { formatDuration, type Instant, type InstantInput, parseInstant } from "../../core/time.ts";
import { BATCH_LIMIT, type Effect } from "../../ports/store.ts";
import { parentOf } from "../attempt/attempt-scope.ts";
import type { AttemptContext } from "../attempt/processor.ts";
import { changeRecord } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";
import { auditEffects } from "../events/audit-log.ts";
import { JobHandle } from "../operations/job-handle.ts";
import { announceRuns, CRONS, type CronDeps, cronEvents, cronJob, cronWakeAt } from "./cron-jobs.ts";

/** What the jobs of a cron override in their definition. */
export type CronJobOptions = Pick<
  EnqueueOptions,
  "queue" | "priority" | "meta" | "limit" | "timeouts" | "retry" | "retention" | "redact"
> & {
  /** Required if the definition has `unique`: `overlap` keeps the jobs of a cron apart. */
  readonly unique?: false;
};

/** `update` (default) changes the existing cron, `keep` leaves it alone, `refuse` throws. */
export type IfExists = "update" | "keep" | "refuse";

interface CronFields<Input> extends CronOptions {
  readonly job: JobDefinition<Input, unknown, unknown>;
  readonly options?: CronJobOptions;
  readonly ifExists?: IfExists;
}

export type CronInput<Input> = CronFields<Input> &
  (undefined extends Input ? { readonly payload?: NoInfer<Input> } : { readonly payload: NoInfer<Input> });

export interface CronView {
  readonly name: string;
  readonly cron: string;
  readonly zone: string;
  readonly clockChange: Required<NonNullable<ScheduleOptions["clockChange"]>>;
  /** The business calendar on whose working days it fires; null if it fires on all days. */
  readonly calendar: string | null;
  /** What becomes of instants on closed days; null without a calendar. */
  readonly closed: CronClosed | null;
  readonly overlap: CronOverlap;
  readonly missed: CronMissed;
  readonly type: string;
  readonly queue: string;
  readonly payload: Json;
  /** What people must not see of its jobs. */
  readonly redact: readonly Path[];
  /** What its jobs override in their definition. */
  readonly options: CronJobOptions;
  /** Fields of a wire protocol, stored as they were sent. */
  readonly wire: { readonly [key: string]: Json };
  readonly isPaused: boolean;
  readonly createdAt: Instant;
  readonly updatedAt: Instant;
  /** When it fires next; null while it is paused, and if the schedule has no more instants. */
  readonly nextAt: Instant | null;
  readonly lastJob: JobId | null;
  /** The last runs, newest first, including skipped ones. */
  readonly runs: readonly CronRun[];
}

/** The job of a cron from a caller without a definition, such as a server. */
export interface RemoteCronJob {
  readonly definition: JobDefinition<unknown, unknown, unknown>;
  readonly payload: string;
  readonly options: EnqueueOptions;
  readonly visibility?: number | undefined;
  readonly wire?: EnqueueContext["wire"];
}

const PUT_KEYS = [...CRON_KEYS, "job", "payload", "options", "ifExists"];
const JOB_KEYS = keysOf<CronJobOptions>({
  queue: true,
  priority: true,
  meta: true,
  limit: true,
  timeouts: true,
  retry: true,
  retention: true,
  unique: true,
  redact: true,
});
const MOST_PREVIEWED = 1_000;

/** Jobs that are enqueued again and again, at the instants of a cron expression. */
export class Crons {
  readonly #context: EngineContext;
  readonly #enqueueContext: () => EnqueueContext;
  readonly #notice: (jobs: readonly NewJob[]) => void;
  readonly #host: CronDeps;
  readonly #by: By | undefined;

  constructor(context: EngineContext, host: CronDeps, by?: By) {
    this.#context = context;
    this.#host = host;
    this.#by = by;
    this.#enqueueContext = host.context;
    this.#notice = host.notice;
  }

  /** The same crons; each change writes an audit entry for this operator in its commit. */
  as(by: By): Crons {
    return new Crons(this.#context, this.#host, parseBy(by));
  }

  /** Adds a cron, or changes the one with this name. Checks all of it, including the payload. */
  async put<Input>(name: string, input: CronInput<Input>): Promise<CronView> {
    refuseUnknownKeys(input, "", PUT_KEYS);
    const {
      job: definition,
      options = {},
      ifExists,
      payload,
      ...schedule
    } = input as CronFields<Input> & { payload?: Input };
    assertDefinition(definition, "job");
    refuseUnknownKeys(options, "options", JOB_KEYS);
    refuseUnique(definition, options);
    const text = await preparePayload(definition, payload as Input, this.#context.documentLimit);
    return this.putRemote(name, schedule, { definition, options, payload: text }, ifExists);
  }

  /** Like `put`, for a caller that has the name of a type but no definition, such as a server. */
  async putRemote(
    name: string,
    options: CronOptions,
    job: RemoteCronJob,
    ifExists: IfExists = "update",
  ): Promise<CronView> {
    this.#context.assertOpen();
    refuseUnknownKeys(options, "", CRON_KEYS);
    if (ifExists !== "update" && ifExists !== "keep" && ifExists !== "refuse")
      throw refuse("invalid_option", "ifExists", ifExists, 'write "update", "keep" or "refuse"');
    const { calendars } = this.#context;
    // This process may not have read a calendar that another one has just stored.
    if (options.calendar !== undefined) await calendars.refresh();
    const rule = parseCron(options, this.#context.clock.now(), "", calendars);
    const cronJob = this.#jobOf(job);
    await this.#context.schemas.check([
      { type: job.definition.type, payload: job.payload, options: job.wire && { wire: job.wire } },
    ]);
    return this.#change("put", checkName(name), (body, now) => {
      if (!body) return newCron(rule, cronJob, now, calendars);
      if (ifExists === "refuse")
        throw new CurfewError(
          "known_cron",
          `put: a cron named ${JSON.stringify(name)} exists; use another name, or ifExists "update"`,
          {
            field: "name",
          },
        );
      return ifExists === "keep" ? null : changedCron(body, rule, cronJob, now, calendars);
    });
  }

  /** Changes when and how a cron fires; its job stays. */
  async update(name: string, changes: Partial<CronOptions>): Promise<CronView> {
    refuseUnknownKeys(changes, "", CRON_KEYS);
    const { calendars } = this.#context;
    if (changes.calendar !== undefined) await calendars.refresh();
    return this.#change("update", checkName(name), (body, now) => {
      if (!body) throw unknownCron("update", name);
      const { cron, zone, overlap, missed, clockChange, calendar, closed } = viewOf(name, body);
      // The default `clockChange` depends on the expression, so a new expression gets new defaults.
      const old = changes.cron === undefined ? { clockChange } : {};
      // Another calendar brings its own zone.
      const place = changes.calendar === undefined ? { zone } : {};
      const days = calendar !== null && closed !== null ? { calendar, closed } : {};
      const next = { cron, ...place, overlap, missed, ...days, ...old, ...changes };
      return changedCron(body, parseCron(next, now, "", calendars), body.job, now, calendars);
    });
  }

  /** Stops a cron in all processes, from the moment this resolves. */
  pause(name: string): Promise<CronView> {
    return this.#change("pause", checkName(name), (body, now) => {
      if (!body) throw unknownCron("pause", name);
      return body.pausedAt === null ? { ...body, pausedAt: now, nextAt: null } : null;
    });
  }

  /** Resumes a paused cron from now on: it does not fire for instants of the pause. */
  resume(name: string): Promise<CronView> {
    return this.#change("resume", checkName(name), (body, now) => {
      if (!body) throw unknownCron("resume", name);
      return body.pausedAt === null ? null : resumedCron(body, now, this.#context.calendars);
    });
  }

  /**
   * Enqueues the job of a cron at once, even if the cron is paused. It ignores `overlap`, but later runs count this
   * job. A handler that passes itself as `parent` passes on the rest of its total budget (SEMANTICS 4.7).
   */
  async trigger(
    name: string,
    options: { readonly parent?: Pick<AttemptContext, "id"> } = {},
  ): Promise<JobHandle<unknown>> {
    refuseUnknownKeys(options, "options", ["parent"]);
    const parent = parentOf(options.parent, "options.parent");
    const made: NewJob[] = [];
    let run: CronRun | undefined;
    const changed = await this.#store(
      "trigger",
      checkName(name),
      (body, now) => {
        if (!body) throw unknownCron("trigger", name);
        const job = cronJob({ ...this.#enqueueContext(), now, ...(parent && { parent }) }, name, body, now);
        made.splice(0, 1, job);
        run = { for: now, at: now, job: job.id, manual: true };
        return { ...body, lastJob: job.id, runs: withRuns(body, [run]) };
      },
      (body) => [
        ...made.map((job) => ({ enqueue: job })),
        ...cronEvents(this.#context, name, body, run ? [run] : []),
      ],
    );
    this.#notice(made);
    if (run) announceRuns(this.#context, name, changed, [run]);
    return new JobHandle(this.#context, (made[0] as NewJob).id);
  }

  /** Deletes a cron; its jobs go on. False if there is no cron with this name. */
  async delete(name: string): Promise<boolean> {
    this.#context.assertOpen();
    const changed = await changeRecord(
      this.#context,
      "delete",
      CRONS,
      checkName(name),
      (body, now) => body && { body: null, effects: this.#audit("delete", name, now) },
    );
    return changed !== null;
  }

  async get(name: string): Promise<CronView | null> {
    const cron = await CRONS.load(this.#context.store, checkName(name));
    return cron && viewOf(name, cron.body);
  }

  /** Crons by name; `after` is the last name of the page before. */
  async list(page: { readonly after?: string; readonly limit?: number } = {}): Promise<CronView[]> {
    refuseUnknownKeys(page, "page", ["after", "limit"]);
    const { after = null, limit = 100 } = page;
    checkCount(limit, "page.limit", BATCH_LIMIT);
    const crons = await CRONS.list(this.#context.store, after, limit);
    return crons.map(({ name, body }) => viewOf(name, body));
  }

  /** The next instants of a cron, or of a schedule that is not stored, each with its local time. */
  async preview(
    cron: string | ScheduleOptions,
    options: { readonly count?: number; readonly from?: InstantInput } = {},
  ): Promise<CronInstant[]> {
    refuseUnknownKeys(options, "options", ["count", "from"]);
    const { count = 10 } = options;
    checkCount(count, "options.count", MOST_PREVIEWED);
    const from =
      options.from === undefined ? this.#context.clock.now() : parseInstant(options.from, "options.from");
    const { calendars } = this.#context;
    await calendars.refresh();
    if (typeof cron === "object" && cron !== null) {
      refuseUnknownKeys(cron, "", ["cron", "every", "zone", "clockChange", "calendar", "closed"]);
      return preview(parseSchedule(cron, "", calendars), from, count, calendars);
    }
    const stored = await CRONS.load(this.#context.store, checkName(cron));
    if (!stored) throw unknownCron("preview", cron);
    return preview(stored.body.rule.schedule, from, count, calendars);
  }

  /** The job in the form that any engine can make it from. Throws now for a job that could not be enqueued later. */
  #jobOf({ definition, options, payload, visibility, wire }: RemoteCronJob): CronJob {
    assertDefinition(definition, "job");
    for (const name of Object.keys(options)) {
      if (JOB_KEYS.includes(name)) continue;
      const fix = `use only ${JOB_KEYS.join(", ")} for the jobs of a cron`;
      throw refuse("unknown_option", `options.${name}`, name, fix);
    }
    refuseUnique(definition, options);
    for (const name of ["cron", "scheduledFor"])
      if (options.meta && name in options.meta)
        throw refuse(
          "invalid_option",
          `options.meta.${name}`,
          options.meta[name],
          "leave it out: the cron writes this field",
        );
    prepareJob(definition, { ...options, unique: false }, this.#enqueueContext());
    return {
      definition: portableDefinition(definition, JSON.parse(payload)),
      options: portableOptions(options),
      payload,
      ...(visibility !== undefined && { visibility }),
      ...(wire !== undefined && { wire }),
    };
  }

  #audit(action: string, cron: string, now: Instant): readonly Effect[] {
    return auditEffects(this.#context, this.#by, `cron.${action}`, { details: { cron } }, now);
  }

  async #change(
    action: string,
    name: string,
    change: (body: CronBody | null, now: Instant) => CronBody | null,
  ): Promise<CronView> {
    return viewOf(name, await this.#store(action, name, change, () => []));
  }

  /** Commits the changed cron, or nothing if `change` returns null. Returns the cron as it is then. */
  async #store(
    action: string,
    name: string,
    change: (body: CronBody | null, now: Instant) => CronBody | null,
    more: (body: CronBody) => readonly Effect[],
  ): Promise<CronBody> {
    this.#context.assertOpen();
    let before = null as CronBody | null;
    const changed = await changeRecord(this.#context, action, CRONS, name, (stored, now) => {
      before = stored;
      const body = change(stored, now);
      const effects = body && [...more(body), ...this.#audit(action, name, now)];
      return effects && { body, wakeAt: cronWakeAt(body), effects };
    });
    const body = changed?.body;
    if (!body) return before as CronBody;
    if (body.nextAt !== null) this.#context.wakeSweepAt(body.nextAt);
    return body;
  }
}

/** Refused: a run whose job is dropped as a duplicate would be listed as a run. */
function refuseUnique(definition: Pick<AnyDefinition, "unique">, { unique }: EnqueueOptions): void {
  const fix = "pass options.unique: false; use overlap to keep the jobs of a cron apart";
  if (unique) throw refuse("invalid_option", "options.unique", unique, fix);
  if (unique === undefined && definition.unique)
    throw refuse("invalid_option", "job.unique", definition.unique.onConflict, fix);
}

function viewOf(name: string, body: CronBody): CronView {
  const { rule, job, createdAt, updatedAt, pausedAt, nextAt, lastJob, runs } = body;
  const { cron, zone, gap, overlap, calendar = null, closed = null } = rule.schedule;
  const { missed } = rule;
  return {
    name,
    cron,
    zone,
    clockChange: { gap, overlap },
    calendar,
    closed,
    overlap: rule.overlap,
    missed: typeof missed === "number" ? { all: formatDuration(missed) as `${number}ms` } : missed,
    type: job.definition.type,
    queue: job.options.queue ?? (job.definition.queue as string),
    payload: JSON.parse(job.payload) as Json,
    redact: parseRedact([...(job.definition.redact ?? []), ...(job.options.redact ?? [])], "redact"),
    options: job.options as CronJobOptions,
    wire: job.wire ?? {},
    isPaused: pausedAt !== null,
    createdAt,
    updatedAt,
    nextAt,
    lastJob,
    runs,
  };
}

function unknownCron(call: string, name: string): CurfewError {
  return new CurfewError(
    "not_found",
    `${call}: there is no cron named ${JSON.stringify(name)}; crons.list() has all names`,
    {
      field: "name",
    },
  );
}
