import { z } from "zod";
import { refuse } from "../../core/errors.ts";
import { checkpointOf } from "../../core/job/documents/checkpoint.ts";
import { pathsWithin, visibleRow } from "../../core/job/documents/redaction.ts";
import type { JobRow } from "../../core/job/job.ts";
import { type Job, jobView } from "../../core/job/job-view.ts";
import { redactValue } from "../../core/redact.ts";
import type { Json } from "../../core/schema.ts";
import type { PageOptions, RowPage } from "../../engine/find/find-jobs.ts";
import type { JobQuery } from "../../engine/find/job-query.ts";
import type { DeadLetterQuery } from "../../engine/operations/dead-letters.ts";
import { type ExtendOptions, unknownJob } from "../../engine/operations/operate-job.ts";
import type { RescheduleOptions } from "../../engine/operations/reschedule-options.ts";
import type { RetryByHandOptions } from "../../engine/operations/retry-by-hand.ts";
import type { ExportPageOptions } from "../../engine/transfer/export-jobs.ts";
import type { ImportOptions } from "../../engine/transfer/import-jobs.ts";
import { isInternal } from "../wire/internal-jobs.ts";
import { limited, readTexts } from "../wire/job-page.ts";
import {
  awaited,
  type Call,
  type CallDeps,
  call,
  definition,
  definitionOf,
  id,
  JsonText,
  jobQuery,
  json,
  options,
  wait,
} from "./call.ts";

const page = options<PageOptions>().optional();

/** A job as people may see it. */
async function seen(row: Promise<JobRow>): Promise<Job> {
  return jobView(visibleRow(await row));
}

async function loaded({ service }: CallDeps, job: string): Promise<Job | null> {
  const row = await service.rows.load(job);
  return row && !isInternal(row) ? jobView(visibleRow(row)) : null;
}

/** A call that is about one job. The engine's own jobs do not exist for clients: to cancel one would break a workflow. */
function onJob<Args extends z.ZodTuple>(
  verb: string,
  summary: string,
  args: Args,
  run: (host: CallDeps, job: string, ...rest: Rest<z.output<Args>>) => unknown,
): Call {
  return call(summary, args, async (host, ...said) => {
    const [job, ...rest] = said as unknown as [string, ...Rest<z.output<Args>>];
    const row = await host.service.rows.load(job);
    if (row && isInternal(row)) throw unknownJob(verb, job);
    return run(host, job, ...rest);
  });
}

type Rest<List extends readonly unknown[]> = List extends readonly [unknown, ...infer Others] ? Others : [];

/** What is redacted is known before the job ends, and its row may be gone afterwards. */
async function resultOf({ engine, service }: CallDeps, job: string, within: number) {
  const row = await service.rows.load(job);
  const paths = pathsWithin(row?.options?.redact, "result");
  // A server has no keys: what is encrypted is sent as it is.
  const answer = await awaited(async () => {
    const text = await engine.job(job).storedResult({ within: { milliseconds: within } });
    return text === null ? undefined : (JSON.parse(text) as Json);
  });
  return answer.isDone && paths.length > 0
    ? { isDone: true, value: redactValue(answer.value, paths) }
    : answer;
}

/** A page that is bounded in bytes: it may be shorter than asked, and its cursor continues. */
async function jobPage(
  read: (page: PageOptions) => Promise<RowPage>,
  { after = null, limit = 100, ...rest }: PageOptions = {},
): Promise<JsonText> {
  // The engine refuses a wrong limit before anything is read by steps.
  if (!Number.isInteger(limit) || limit < 1 || limit > 1_000) await read({ ...rest, after, limit });
  const found = await readTexts(
    (from, step) => read({ ...rest, after: from, limit: step }),
    after,
    limit,
    (row: JobRow) => JSON.stringify(jobView(visibleRow(row))),
  );
  return new JsonText(`{"jobs":[${found.texts.join(",")}],"cursor":${JSON.stringify(found.cursor)}}`);
}

function checkedDead(query: DeadLetterQuery = {}): DeadLetterQuery {
  for (const name of ["state", "deadLetter", "isLive"])
    if (Object.hasOwn(query, name))
      throw refuse("unknown_option", `query.${name}`, name, "leave it out: dead letters are discarded jobs");
  return query;
}

export const jobCalls = {
  "jobs.load": call("Load a job", z.tuple([id]), loaded),
  "jobs.result": onJob("result", "Wait for the result of a job", z.tuple([id, wait]), resultOf),
  "jobs.find": call(
    "Find jobs",
    z.tuple([jobQuery<JobQuery>().optional(), page]),
    ({ service }, query, asked) => jobPage((step) => service.rows.find(query, step), asked),
  ),
  "jobs.cancel": onJob("cancel", "Cancel a job", z.tuple([id]), ({ service, by }, job) =>
    seen(service.rows.cancel(job, by)),
  ),
  "jobs.extend": onJob(
    "extend",
    "Change the limits of a job",
    z.tuple([id, options<ExtendOptions>()]),
    ({ service, by }, job, limits) => seen(service.rows.extend(job, limits, by)),
  ),
  "jobs.retry": onJob(
    "retry",
    "Run a discarded job again",
    z.tuple([id, options<RetryByHandOptions>().optional()]),
    ({ service, by }, job, how) => seen(service.rows.retry(job, how, by)),
  ),
  "jobs.activate": onJob("activate", "Make a pending job available", z.tuple([id]), ({ service, by }, job) =>
    seen(service.rows.activate(job, by)),
  ),
  "jobs.prioritise": onJob(
    "prioritise",
    "Change the priority of a job",
    z.tuple([id, z.number()]),
    ({ service, by }, job, priority) => seen(service.rows.prioritise(job, priority, by)),
  ),
  "jobs.runNow": onJob("runNow", "Make a waiting job due now", z.tuple([id]), ({ service, by }, job) =>
    seen(service.rows.runNow(job, by)),
  ),
  "jobs.reschedule": onJob(
    "reschedule",
    "Change when a waiting job is due",
    z.tuple([id, options<RescheduleOptions>()]),
    ({ service, by }, job, when) => seen(service.rows.reschedule(job, when, by)),
  ),
  "jobs.explain": onJob(
    "explain",
    "Explain the limits of a job",
    z.tuple([id, definition.optional()]),
    ({ engine }, job, said) => engine.explain(job, said && definitionOf(said)),
  ),
  "jobs.why": onJob("why", "Explain why a job does not run", z.tuple([id]), ({ engine }, job) =>
    engine.why(job),
  ),
  "jobs.progress": onJob("progress", "Load the progress of a job", z.tuple([id]), ({ engine }, job) =>
    engine.job(job).progress(),
  ),
  "jobs.checkpoint": onJob(
    "checkpoint",
    "Load the saved state of a job",
    z.tuple([id]),
    async ({ service }, job) => {
      const row = await service.rows.load(job);
      if (!row) throw unknownJob("checkpoint", job);
      return checkpointOf(visibleRow(row));
    },
  ),
  "jobs.clearCheckpoint": onJob(
    "clearCheckpoint",
    "Delete the saved state of a job",
    z.tuple([id]),
    ({ engine }, job) => engine.job(job).clearCheckpoint(),
  ),
  "jobs.logs": onJob(
    "logs",
    "Load log lines of a job",
    z.tuple([id, options<{ after?: number | null; limit?: number }>().optional()]),
    ({ engine }, job, asked) => engine.job(job).logs(asked),
  ),
  "jobs.export": call(
    "Export jobs as lines",
    z.tuple([jobQuery<JobQuery>().optional(), options<ExportPageOptions>().optional()]),
    ({ engine }, query, asked) => limited(() => engine.exportJobs(query, asked)),
  ),
  "jobs.import": call(
    "Store lines of an export",
    z.tuple([z.array(json).max(1_000), options<Omit<ImportOptions, "by" | "tx">>().optional()]),
    ({ engine, by }, lines, how) => limited(() => engine.importJobs(lines, { ...how, by })),
  ),
  "deadLetters.list": call(
    "List dead letters",
    z.tuple([jobQuery<DeadLetterQuery>().optional(), page]),
    ({ service }, query, asked) =>
      jobPage((step) => service.rows.find({ ...checkedDead(query), deadLetter: true }, step), asked),
  ),
  "deadLetters.get": call("Load a dead letter", z.tuple([id]), async (host, job) => {
    const found = await loaded(host, job);
    return found?.deadLetter ? found : null;
  }),
  "deadLetters.count": call(
    "Count dead letters",
    z.tuple([jobQuery<DeadLetterQuery>().optional()]),
    ({ engine }, query) => engine.deadLetters.count(query),
  ),
  "deadLetters.retry": onJob(
    "retry",
    "Run a dead letter again",
    z.tuple([id, options<RetryByHandOptions>().optional()]),
    async (host, job, how) => {
      await host.engine.deadLetters.retry(job, how, host.by);
      return loaded(host, job);
    },
  ),
  "deadLetters.delete": onJob("delete", "Delete a dead letter", z.tuple([id]), ({ engine, by }, job) =>
    engine.deadLetters.delete(job, by),
  ),
};
