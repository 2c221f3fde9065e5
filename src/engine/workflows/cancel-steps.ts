import { decide } from "../../core/job/decide.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import { isBookkeeping } from "../../core/job/step-rules.ts";
import { type Decided, outsidersUnit } from "../commit/decision-unit.ts";
import type { EngineContext } from "../context.ts";
import { announceDecision } from "../operations/operate-job.ts";
import { loadWorkflow, pagesOf, type StoredWorkflow } from "./workflow-records.ts";

const TRIES = 20;

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
    for (let tries = 0; left.length > 0 && tries < TRIES; tries++) {
      const rows = await parts.store.jobs.load(left);
      // Read after the rows, so the rows are no newer than the version that is compared. Their commit names revisions.
      const current = await loadWorkflow(parts.store, stored.id);
      if (current?.version !== stored.version) return;
      left = await haltRows(parts, rows.filter((row) => row !== null && !isTerminal(row.state)) as JobRow[]);
    }
  }
}

/** Answers which of the jobs have changed meanwhile. */
async function haltRows(parts: EngineContext, rows: readonly JobRow[]): Promise<JobId[]> {
  if (rows.length === 0) return [];
  const now = parts.clock.now();
  const decisions = rows.map((row) => haltingDecision(parts, row, now));
  const units = rows.map((row, index) => {
    const decision = decisions[index] as Decided;
    const told = isBookkeeping(row) ? undefined : parts.recorder.recorded(row, decision, now);
    return outsidersUnit(row, decision, undefined, told);
  });
  const outcomes = await parts.store.commit(units, { now });
  return rows.flatMap((row, index) => {
    if (!outcomes[index]?.ok) return [row.id];
    if (!isBookkeeping(row)) announceDecision(parts, row, decisions[index] as Decided, now);
    return [];
  });
}

/** Ends a job in the name of its workflow. What was only kept to wait leaves nothing behind. */
export function haltingDecision(
  { random }: Pick<EngineContext, "random">,
  row: JobRow,
  now: number,
): Decided {
  const decision = decide(row, { type: "cancel", halted: true }, now, random) as Decided;
  return isBookkeeping(row) ? { ...decision, drop: true } : decision;
}
