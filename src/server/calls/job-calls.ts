import { z } from "zod";
import type { Job } from "../../core/job/job-view.ts";
import type { DeadLetterQuery } from "../../engine/operations/dead-letters.ts";
import type { ExportPageOptions } from "../../engine/operations/export-jobs.ts";
import type { JobPage, PageOptions } from "../../engine/operations/find-jobs.ts";
import type { ImportOptions } from "../../engine/operations/import-jobs.ts";
import type { JobQuery } from "../../engine/operations/job-query.ts";
import type { ExtendOptions, RetryByHandOptions } from "../../engine/operations/operate-job.ts";
import type { RescheduleOptions } from "../../engine/operations/reschedule-options.ts";
import { limited, readTexts } from "../wire/job-page.ts";
import { awaited, call, definition, definitionOf, id, JsonText, json, options, wait } from "./call.ts";

const page = options<PageOptions>().optional();

/** A page that is bounded in bytes: it may be shorter than asked, and its cursor continues. */
async function jobPage(
  read: (page: PageOptions) => Promise<JobPage>,
  { after = null, limit = 100, ...rest }: PageOptions = {},
): Promise<JsonText> {
  // The engine refuses a wrong limit before anything is read by steps.
  if (!Number.isInteger(limit) || limit < 1 || limit > 1_000) await read({ ...rest, after, limit });
  const found = await readTexts(
    (from, step) => read({ ...rest, after: from, limit: step }),
    after,
    limit,
    (job: Job) => JSON.stringify(job),
  );
  return new JsonText(`{"jobs":[${found.texts.join(",")}],"cursor":${JSON.stringify(found.cursor)}}`);
}

export const jobCalls = {
  "jobs.load": call("Load a job", z.tuple([id]), ({ engine }, job) => engine.load(job)),
  "jobs.result": call("Wait for the result of a job", z.tuple([id, wait]), ({ engine }, job, within) =>
    awaited(() => engine.job(job).result({ within: { milliseconds: within } })),
  ),
  "jobs.find": call(
    "Find jobs",
    z.tuple([options<JobQuery>().optional(), page]),
    ({ engine }, query, asked) => jobPage((step) => engine.find(query, step), asked),
  ),
  "jobs.cancel": call("Cancel a job", z.tuple([id]), ({ engine, by }, job) => engine.cancel(job, by)),
  "jobs.extend": call(
    "Change the limits of a job",
    z.tuple([id, options<ExtendOptions>()]),
    ({ engine, by }, job, limits) => engine.extend(job, limits, by),
  ),
  "jobs.retry": call(
    "Run a discarded job again",
    z.tuple([id, options<RetryByHandOptions>().optional()]),
    ({ engine, by }, job, how) => engine.retry(job, how, by),
  ),
  "jobs.activate": call("Make a pending job available", z.tuple([id]), ({ engine, by }, job) =>
    engine.activate(job, by),
  ),
  "jobs.prioritise": call(
    "Change the priority of a job",
    z.tuple([id, z.number()]),
    ({ engine, by }, job, priority) => engine.job(job).prioritise(priority, by),
  ),
  "jobs.runNow": call("Make a waiting job due now", z.tuple([id]), ({ engine, by }, job) =>
    engine.job(job).runNow(by),
  ),
  "jobs.reschedule": call(
    "Change when a waiting job is due",
    z.tuple([id, options<RescheduleOptions>()]),
    ({ engine, by }, job, when) => engine.job(job).reschedule(when, by),
  ),
  "jobs.explain": call(
    "Explain the limits of a job",
    z.tuple([id, definition.optional()]),
    ({ engine }, job, said) => engine.explain(job, said && definitionOf(said)),
  ),
  "jobs.why": call("Explain why a job does not run", z.tuple([id]), ({ engine }, job) => engine.why(job)),
  "jobs.progress": call("Load the progress of a job", z.tuple([id]), ({ engine }, job) =>
    engine.job(job).progress(),
  ),
  "jobs.checkpoint": call("Load the saved state of a job", z.tuple([id]), ({ engine }, job) =>
    engine.job(job).checkpoint(),
  ),
  "jobs.clearCheckpoint": call("Delete the saved state of a job", z.tuple([id]), ({ engine }, job) =>
    engine.job(job).clearCheckpoint(),
  ),
  "jobs.logs": call(
    "Load log lines of a job",
    z.tuple([id, options<{ after?: number | null; limit?: number }>().optional()]),
    ({ engine }, job, asked) => engine.job(job).logs(asked),
  ),
  "jobs.export": call(
    "Export jobs as lines",
    z.tuple([options<JobQuery>().optional(), options<ExportPageOptions>().optional()]),
    ({ engine }, query, asked) => limited(() => engine.exportJobs(query, asked)),
  ),
  "jobs.import": call(
    "Store lines of an export",
    z.tuple([z.array(json).max(1_000), options<Omit<ImportOptions, "by" | "tx">>().optional()]),
    ({ engine, by }, lines, how) => limited(() => engine.importJobs(lines, { ...how, by })),
  ),
  "deadLetters.list": call(
    "List dead letters",
    z.tuple([options<DeadLetterQuery>().optional(), page]),
    ({ engine }, query, asked) => jobPage((step) => engine.deadLetters.list(query, step), asked),
  ),
  "deadLetters.get": call("Load a dead letter", z.tuple([id]), ({ engine }, job) =>
    engine.deadLetters.get(job),
  ),
  "deadLetters.count": call(
    "Count dead letters",
    z.tuple([options<DeadLetterQuery>().optional()]),
    ({ engine }, query) => engine.deadLetters.count(query),
  ),
  "deadLetters.retry": call(
    "Run a dead letter again",
    z.tuple([id, options<RetryByHandOptions>().optional()]),
    ({ engine, by }, job, how) => engine.deadLetters.retry(job, how, by),
  ),
  "deadLetters.delete": call("Delete a dead letter", z.tuple([id]), ({ engine, by }, job) =>
    engine.deadLetters.delete(job, by),
  ),
};
