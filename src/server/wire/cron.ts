import { z } from "zod";
import type { CronMissed, CronOptions, CronOverlap } from "../../core/cron/cron.ts";
import { show } from "../../core/errors.ts";
import { pathsWithin, redactTexts } from "../../core/job/documents/redaction.ts";
import type { JobRow } from "../../core/job/job.ts";
import { redactValue } from "../../core/redact.ts";
import type { Instant } from "../../core/time.ts";
import { checkZone } from "../../core/timeout/wall-clock.ts";
import type { CronView, RemoteCronJob } from "../../engine/crons/crons.ts";
import { readIsoDuration } from "../../ojs/wire-durations.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import { checked } from "../http/checked.ts";
import { refusedField } from "../http/http-error.ts";
import { adminPageQuery } from "./admin-schemas.ts";
import { readJob } from "./enqueue.ts";
import {
  type EnqueueBody,
  enqueueSchema,
  metaObject,
  optionsSchema,
  queueName,
  versionedType,
} from "./schemas.ts";

const OVERLAPS = ["allow", "skip", "cancel_previous"] as const;
const window = z.string().refine((text) => (readIsoDuration(text) ?? 0) > 0, {
  error: 'write "skip", "once", or how far back as an ISO 8601 duration such as "PT1H"',
});

/** Clients may leave `args` out. */
const templateSchema = z.preprocess(
  (said) =>
    typeof said === "object" && said !== null && !Array.isArray(said) && !("args" in said)
      ? { ...said, args: [] }
      : said,
  enqueueSchema,
);

const CLOSED = ["skip", "next", "previous"] as const;
const calendarFields = {
  calendar: z.string().min(1).max(255).nullish().meta({
    description: "A business calendar: the cron fires on its working days, in its zone.",
  }),
  closed_days: z.enum(CLOSED).nullish().meta({
    description:
      "With calendar: leave out an instant on a closed day, or move it to the working day after or before.",
  }),
};

/** Clients send a job template beside `expression`, or the job's fields beside `cron`. */
export const cronSchema = z
  .looseObject({
    name: z.string().min(1).max(255),
    expression: z.string().max(255).nullish(),
    cron: z.string().max(255).nullish().meta({ description: "Another name for the expression." }),
    timezone: z.string().max(255).nullish().meta({ description: "An IANA zone. Default UTC." }),
    overlap_policy: z.enum(OVERLAPS).nullish().meta({
      description: "What to do when it is due while its last job has not ended. Default allow.",
    }),
    missed_policy: z
      .union([z.enum(["skip", "once"]), window])
      .nullish()
      .meta({
        description: "What becomes of instants at which no server ran: none, one for all, or each within.",
      }),
    ...calendarFields,
    enabled: z.boolean().nullish(),
    job_template: templateSchema.nullish(),
    type: versionedType.nullish(),
    args: z.array(z.any()).nullish(),
    meta: metaObject.nullish(),
    queue: queueName.nullish().meta({ description: "As options.queue." }),
    options: optionsSchema.nullish(),
  })
  .refine(({ expression, cron }) => (expression ?? cron) != null, {
    error: 'name when it fires, such as "0 9 * * 1-5"',
    path: ["expression"],
  })
  .meta({ id: "CronRequest" });

export const cronChangeSchema = z
  .looseObject({
    expression: z.string().max(255).nullish(),
    cron: z.string().max(255).nullish(),
    timezone: z.string().max(255).nullish(),
    overlap_policy: z.enum(OVERLAPS).nullish(),
    missed_policy: z.union([z.enum(["skip", "once"]), window]).nullish(),
    ...calendarFields,
    enabled: z.boolean().nullish(),
    job_template: z
      .undefined({ error: "its job is not changed here: put the whole cron again with POST" })
      .optional(),
  })
  .meta({ id: "CronChange" });

export const cronsQuery = adminPageQuery.extend({ enabled: z.enum(["true", "false"]).optional() });

export const cronHistoryQuery = z.looseObject({
  limit: z.coerce.number().int().min(1).max(1_000).optional(),
});

type CronBody = z.output<typeof cronSchema>;

type Change = z.output<typeof cronChangeSchema>;
type Schedule = Pick<
  Change,
  "timezone" | "overlap_policy" | "missed_policy" | "expression" | "cron" | "calendar" | "closed_days"
>;

/** The schedule options that were sent. */
export function readSchedule(body: Schedule): Partial<CronOptions> {
  const { timezone, overlap_policy, missed_policy, calendar, closed_days } = body;
  const expression = body.expression ?? body.cron;
  if (timezone != null) checkZone(timezone, "timezone");
  if (body.cron != null && body.cron !== expression)
    throw refusedField(
      "cron",
      `${show(body.cron)} contradicts expression: ${show(expression)}; send one of them`,
    );
  return {
    ...(expression != null && { cron: expression }),
    ...(timezone != null && { zone: timezone }),
    ...(calendar != null && { calendar }),
    ...(closed_days != null && { closed: closed_days }),
    ...(overlap_policy != null && { overlap: overlap_policy.replace("_", "-") as CronOverlap }),
    ...(missed_policy != null && { missed: readMissed(missed_policy) }),
  };
}

function readMissed(said: string): CronMissed {
  return said === "skip" || said === "once"
    ? said
    : { all: { milliseconds: readIsoDuration(said) as number } };
}

/** The job that the cron enqueues. */
export function readTemplate(body: CronBody, now: Instant, documentLimit: number): RemoteCronJob {
  const { queue } = body;
  if (body.job_template) refuseOtherJob(body, body.job_template);
  const template = body.job_template ? { queue, ...body.job_template } : readFlat(body);
  refuseForCrons(template, body.job_template ? "job_template." : "");
  const { definition, payload, options, isPending, visibility, wire } = readJob(template, now, documentLimit);
  if (isPending) throw refusedField("pending", "the cron says when its jobs run; leave it out");
  return {
    definition,
    payload,
    options,
    ...(visibility !== undefined && { visibility }),
    ...(wire && { wire }),
  };
}

/** What a job of a cron cannot have, and why. The engine would refuse it too, but in the words of the library. */
const NOT_FOR_CRONS: Readonly<Record<string, string>> = {
  id: "each job of a cron has an id of its own",
  parent_id: "a job of a cron has no parent",
  scheduled_at: "the cron says when its jobs run",
  delay_until: "the cron says when its jobs run",
  expires_at: "one instant cannot hold for all jobs of a cron; use enqueue_ttl",
  fair_key: "jobs of a cron have no key of their own in a fair queue",
  unique: "overlap_policy keeps the jobs of a cron apart",
};

function refuseForCrons(job: EnqueueBody, place: string): void {
  for (const [at, fields] of [
    [place, job],
    [`${place}options.`, job.options ?? {}],
  ] as const)
    for (const [name, value] of Object.entries(fields))
      if (value != null && Object.hasOwn(NOT_FOR_CRONS, name))
        throw refusedField(`${at}${name}`, `${show(value)}: ${NOT_FOR_CRONS[name]}; leave it out`);
}

/** Clients may send back what they read, which has the job in both places. A second, other job would be dropped. */
function refuseOtherJob(body: CronBody, template: EnqueueBody): void {
  for (const name of ["type", "args", "meta", "options"] as const) {
    if (body[name] == null || JSON.stringify(body[name]) === JSON.stringify(template[name])) continue;
    throw refusedField(name, "it contradicts job_template, which has the job; send one of them");
  }
}

function readFlat({ type, args, meta, queue, options }: CronBody): EnqueueBody {
  if (type == null)
    throw refusedField(
      "type",
      'it is missing; send the type of the job, such as "card.charge", or a job_template',
    );
  return checked(enqueueSchema, { type, args: args ?? [], meta, queue, options }) as EnqueueBody;
}

export function cronFields(view: CronView) {
  const { name, cron, zone, overlap, type, queue, isPaused, nextAt, runs, wire, redact } = view;
  const payload = redactValue(view.payload, pathsWithin(redact, "payload"));
  const last = runs.find((run) => run.job !== undefined);
  const isSpread = (wire as { spread?: boolean }).spread === true;
  const job = {
    type,
    args: isSpread ? payload : [payload],
    options: { queue },
    ...(redact.length > 0 && { redacted: redactTexts(redact) }),
  };
  return {
    id: name,
    name,
    expression: cron,
    cron,
    schedule: cron,
    timezone: zone,
    ...(view.calendar !== null && { calendar: view.calendar, closed_days: view.closed }),
    overlap_policy: overlap.replace("-", "_"),
    missed_policy: typeof view.missed === "string" ? view.missed : { all: view.missed.all },
    enabled: !isPaused,
    status: isPaused ? "paused" : "active",
    next_run_at: nextAt === null ? null : instantText(nextAt),
    last_run_at: last ? instantText(last.at) : null,
    last_job_id: view.lastJob,
    created_at: instantText(view.createdAt),
    updated_at: instantText(view.updatedAt),
    job_template: job,
    ...job,
  };
}

function endOf(row: JobRow | undefined) {
  if (!row) return {};
  const { state, startedAt, finishedAt } = row;
  return {
    state,
    ...(startedAt !== null && { started_at: instantText(startedAt) }),
    ...(finishedAt !== null && { completed_at: instantText(finishedAt) }),
  };
}

/** The runs, with the state of jobs that still exist. */
export function runFields({ runs }: CronView, rows: ReadonlyMap<string, JobRow>) {
  return runs.map(({ for: dueAt, at, job, manual, cancelled, skipped, count }) => ({
    scheduled_for: instantText(dueAt),
    scheduled_at: instantText(dueAt),
    at: instantText(at),
    job_id: job ?? null,
    ...endOf(job === undefined ? undefined : rows.get(job)),
    ...(manual && { manual }),
    ...(cancelled && { cancelled_job_id: cancelled }),
    ...(skipped && { skipped, count: count ?? 1 }),
  }));
}

const cron = z
  .looseObject({
    name: z.string(),
    expression: z.string(),
    timezone: z.string(),
    overlap_policy: z.enum(OVERLAPS),
    enabled: z.boolean(),
    next_run_at: z.string().nullable(),
    created_at: z.string(),
  })
  .meta({ id: "Cron" });

export const cronReplySchema = z.looseObject({ cron, cron_job: cron });
export const cronsReplySchema = z.looseObject({ crons: z.array(cron), cron_jobs: z.array(cron) });
