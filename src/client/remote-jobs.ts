import type { Job } from "../core/job/job-view.ts";
import type { Json } from "../core/schema.ts";
import type { BulkApi, DeadLettersApi } from "../engine/curfew-api.ts";
import type { JobPage, PageOptions } from "../engine/find/find-jobs.ts";
import type { BulkOptions, BulkResult } from "../engine/operations/bulk.ts";
import type { BulkStep, CallName } from "../ojs/call-names.ts";
import type { Caller } from "./caller.ts";

/** A job as the server sent it. JSON has no undefined, so absent documents are put back. */
export function readJob<Result = Json>(sent: Job<Result>): Job<Result> {
  return { ...sent, result: sent.result, checkpoint: sent.checkpoint };
}

/** A page of jobs. The server bounds its replies in bytes, so a page may take several calls. */
export async function jobPage(
  caller: Caller,
  name: "jobs.find" | "deadLetters.list",
  query: object | undefined,
  page: PageOptions = {},
): Promise<JobPage> {
  const jobs: Job[] = [];
  const { limit = 100 } = page;
  for (let after = page.after; ; ) {
    const rest = { ...page, ...(after !== undefined && { after }), limit: limit - jobs.length };
    const found = await caller.call<JobPage>(name, [query ?? {}, rest]);
    jobs.push(...found.jobs.map((job) => readJob(job)));
    // A scan that matches nothing for long ends early too. The caller continues from the cursor, as on an engine.
    if (found.cursor === null || found.jobs.length === 0 || jobs.length >= limit)
      return { jobs, cursor: found.cursor };
    after = found.cursor;
  }
}

type BulkName = Extract<CallName, `bulk.${string}` | "deadLetters.retryAll" | "deadLetters.deleteAll">;

/** Takes an action on many jobs in steps of some seconds, and adds up what they did. */
async function inSteps(
  caller: Caller,
  name: BulkName,
  query: object,
  options: BulkOptions = {},
): Promise<BulkResult> {
  const { signal, onProgress, limit, ...sent } = options;
  let total: BulkResult = {
    matched: 0,
    done: 0,
    skipped: 0,
    failed: 0,
    isComplete: false,
    cursor: options.after ?? null,
    errors: [],
  };
  let startedAt: number | undefined;
  while (!signal?.aborted) {
    const step = await caller.call<BulkResult & BulkStep>(name, [
      query,
      {
        ...sent,
        ...(total.cursor !== null && { after: total.cursor }),
        ...(limit !== undefined && { limit: limit - total.done }),
        ...(startedAt !== undefined && { startedAt }),
      },
    ]);
    startedAt = step.startedAt;
    total = {
      matched: total.matched + step.matched,
      done: total.done + step.done,
      skipped: total.skipped + step.skipped,
      failed: total.failed + step.failed,
      isComplete: step.isComplete,
      cursor: step.cursor,
      errors: [...total.errors, ...step.errors].slice(0, 10),
    };
    if (step.matched > 0) onProgress?.(total);
    const isEnough = limit !== undefined && total.done >= limit;
    // A step that came no further was stopped by a store that fails.
    const isStuck = step.matched === 0 && step.errors.length > 0;
    if (step.isComplete || isEnough || isStuck) break;
  }
  return total;
}

export function remoteBulk(caller: Caller): BulkApi {
  return {
    count: (query, { signal } = {}) => caller.call("bulk.count", [query], { signal }),
    cancel: (query, options) => inSteps(caller, "bulk.cancel", query, options),
    retry: (query, options) => inSteps(caller, "bulk.retry", query, options),
    delete: (query, options) => inSteps(caller, "bulk.delete", query, options),
    prioritise: (query, options) => inSteps(caller, "bulk.prioritise", query, options),
  };
}

export function remoteDeadLetters(caller: Caller): DeadLettersApi {
  return {
    list: (query, page) => jobPage(caller, "deadLetters.list", query, page),
    async get(id) {
      const found = await caller.call<Job | null>("deadLetters.get", [id]);
      return found && readJob(found);
    },
    count: (query = {}, { signal } = {}) => caller.call("deadLetters.count", [query], { signal }),
    retry: async (id, options) => readJob(await caller.call<Job>("deadLetters.retry", [id, options])),
    retryAll: (query, options) => inSteps(caller, "deadLetters.retryAll", query, options),
    delete: (id) => caller.call("deadLetters.delete", [id]),
    deleteAll: (query, options) => inSteps(caller, "deadLetters.deleteAll", query, options),
  };
}
