import { decide } from "../../core/job/decide/decide.ts";
import { isBookkeeping } from "../../core/job/decide/step-rules.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import { commitJobs, STALE_TRIES } from "../commit/commit.ts";
import type { Decided, DecidedJob } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { pagesOf, type StoredWorkflow, WORKFLOWS } from "./workflow-records.ts";

/**
 * Cancels the live jobs among these jobs of a workflow, the last ones first, so that none wakes a job that is cancelled
 * next. It can be repeated after a crash. It stops if the workflow changed since `stored` was read: then another
 * process went on, and a live job may be a callback or a step that was retried by hand.
 */
export async function halt(
  context: EngineContext,
  stored: StoredWorkflow,
  ids: readonly JobId[],
): Promise<void> {
  for (const page of pagesOf(ids.toReversed())) {
    let left = page;
    for (let tries = 0; left.length > 0 && tries < STALE_TRIES; tries++) {
      const rows = await context.store.jobs.load(left, { isBrief: true });
      // Read after the rows, so the rows are no newer than the version that is compared. Their commit names revisions.
      const current = await WORKFLOWS.load(context.store, stored.name);
      if (current?.version !== stored.version) return;
      left = await haltRows(
        context,
        rows.filter((row) => row !== null && !isTerminal(row.state)) as JobRow[],
      );
    }
  }
}

/** Returns the jobs that changed since they were read. */
async function haltRows(context: EngineContext, rows: readonly JobRow[]): Promise<JobId[]> {
  const at = context.clock.now();
  const jobs = rows.map(
    (row): DecidedJob => ({ row, decision: haltingDecision(context, row, at), at, by: "outsider" }),
  );
  const outcomes = await commitJobs(context, jobs);
  return rows.flatMap(({ id }, index) => (outcomes[index]?.ok ? [] : [id]));
}

/** Ends a job for its workflow. A bookkeeping job is deleted, without events. */
export function haltingDecision(
  { random }: Pick<EngineContext, "random">,
  row: JobRow,
  now: number,
): Decided {
  const decision = decide(row, { type: "cancel", halted: true }, now, random) as Decided;
  return isBookkeeping(row) ? { ...decision, drop: true, events: [] } : decision;
}
