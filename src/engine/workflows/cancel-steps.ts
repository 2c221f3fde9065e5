import { decide } from "../../core/job/decide.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import { isBookkeeping } from "../../core/job/step-rules.ts";
import { commitJobs, STALE_TRIES } from "../commit/commit.ts";
import type { Decided, DecidedJob } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { pagesOf, type StoredWorkflow, WORKFLOWS } from "./workflow-records.ts";

/**
 * Cancels what is still live of these jobs of a workflow, those that come last first: so none of them wakes another
 * that is about to be cancelled too. A process that is interrupted in it can do it again.
 *
 * It stops if the workflow has changed since `stored` was read: then another process went on from there. Steps that a
 * decision was about may be gone, and what is live now may be a callback on its way or a step that was retried by hand.
 */
export async function halt(
  parts: EngineContext,
  stored: StoredWorkflow,
  ids: readonly JobId[],
): Promise<void> {
  for (const page of pagesOf(ids.toReversed())) {
    let left = page;
    for (let tries = 0; left.length > 0 && tries < STALE_TRIES; tries++) {
      const rows = await parts.store.jobs.load(left);
      // Read after the rows, so the rows are no newer than the version that is compared. Their commit names revisions.
      const current = await WORKFLOWS.load(parts.store, stored.name);
      if (current?.version !== stored.version) return;
      left = await haltRows(parts, rows.filter((row) => row !== null && !isTerminal(row.state)) as JobRow[]);
    }
  }
}

/** Returns the jobs that changed meanwhile. */
async function haltRows(context: EngineContext, rows: readonly JobRow[]): Promise<JobId[]> {
  const at = context.clock.now();
  const jobs = rows.map(
    (row): DecidedJob => ({ row, decision: haltingDecision(context, row, at), at, by: "outsider" }),
  );
  const outcomes = await commitJobs(context, jobs);
  return rows.flatMap(({ id }, index) => (outcomes[index]?.ok ? [] : [id]));
}

/** Ends a job in the name of its workflow. A bookkeeping job leaves nothing behind, and no events. */
export function haltingDecision(
  { random }: Pick<EngineContext, "random">,
  row: JobRow,
  now: number,
): Decided {
  const decision = decide(row, { type: "cancel", halted: true }, now, random) as Decided;
  return isBookkeeping(row) ? { ...decision, drop: true, events: [] } : decision;
}
