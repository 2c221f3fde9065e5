import { visibleRow } from "../../core/job/documents/redaction.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import { isCompleted, resultOf } from "../../core/workflow/outcome.ts";
import { finalsOf, type Plan, stepsOf } from "../../core/workflow/plan.ts";
import type { StepCounts, WorkflowFailure, WorkflowRecord } from "../../core/workflow/workflow-record.ts";
import type { Store } from "../../ports/store.ts";
import { commitJobs } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";
import { announceWorkflow, workflowEvents } from "./announce-workflow.ts";
import { haltingDecision } from "./cancel-steps.ts";
import { briefRowsOf, RESULTS, rowsOf, type StoredWorkflow, WORKFLOWS } from "./workflow-records.ts";

interface Ended {
  readonly ends: ReadonlyMap<JobId, Pick<JobRow, "state" | "result">>;
  /** The same as people may see them; undefined if no step hides a part of its result. */
  readonly visibleEnds: ReadonlyMap<JobId, Pick<JobRow, "state" | "result">> | undefined;
  /** Characters of the results that were read. Some are missing if they are more than a document may have. */
  readonly size: number;
  readonly counts: StepCounts;
  readonly failed: JobRow | undefined;
}

/** Fixes the state and the result of a workflow whose steps have all ended. `row` is the job that waits for this. */
export async function closeWorkflow(context: EngineContext, row: JobRow, plan: Plan): Promise<void> {
  const { store, clock, bus, documentLimit } = context;
  const stored = await WORKFLOWS.load(store, row.workflow as string);
  if (stored?.body.state !== "running") return;
  const ended = await readEnds(context, plan);
  const { visibleEnds } = ended;
  const now = clock.now();
  const isDone = isCompleted(plan.root, ended.ends);
  const isSmall = isDone && ended.size <= documentLimit;
  const value = isSmall ? resultOf(plan.root, ended.ends) : null;
  const isKept = isSmall && JSON.stringify(value).length <= documentLimit;
  const record: WorkflowRecord = {
    ...stored.body,
    state: isDone ? "completed" : "failed",
    phase: "ending",
    endedAt: now,
    counts: ended.counts,
    failure: isDone ? null : failureOf(stored, ended.failed, now),
    isResultKept: isKept,
  };
  const { name: id, version } = stored;
  const effects = [
    WORKFLOWS.put(id, record, now),
    ...(isKept
      ? [RESULTS.put(id, { value, ...(visibleEnds && { visible: resultOf(plan.root, visibleEnds) }) }, null)]
      : []),
    ...workflowEvents(context.recorder, id, record, now),
  ];
  // Callers of `result()` wait for `row`, so announcing its end wakes them.
  const decision = haltingDecision(context, row, now);
  const when = [WORKFLOWS.guard(id, version)];
  const [outcome] = await commitJobs(context, [{ row, decision, at: now, by: "outsider", when, effects }]);
  if (outcome?.ok) announceWorkflow(bus, id, record, now);
}

/** Reads how the steps ended, and the results of those steps that make up the workflow's result. */
async function readEnds({ store, documentLimit }: EngineContext, { root }: Plan): Promise<Ended> {
  const finals = new Set(finalsOf(root));
  const steps = stepsOf(root);
  const order = new Map(steps.map((id, index) => [id, index]));
  const others = steps.filter((id) => !finals.has(id));
  const ends = new Map<JobId, Pick<JobRow, "state" | "result">>();
  const visible: typeof ends = new Map();
  let isHidden = false;
  let failed: JobRow | undefined;
  let size = 0;
  const read = (row: JobRow) => {
    const { result } = row;
    size += result?.length ?? 0;
    const seen = result === null ? null : visibleRow(row).result;
    isHidden ||= seen !== result;
    ends.set(row.id, { state: row.state, result });
    visible.set(row.id, { state: row.state, result: seen });
    if (isFirstFailure(row, failed, order)) failed = row;
  };
  for await (const row of briefRowsOf(store, others)) read(row);
  for await (const row of rowsOf(store, [...finals], documentLimit)) read(row);
  return { ends, size, visibleEnds: isHidden ? visible : undefined, counts: countsOf(ends.values()), failed };
}

/** Whether this step says why a workflow failed, rather than the one before. The order of the steps decides. */
function isFirstFailure(
  { id, state }: JobRow,
  before: JobRow | undefined,
  order: ReadonlyMap<JobId, number>,
): boolean {
  if (state !== "discarded" && state !== "cancelled") return false;
  // A cancelled step may only be a consequence of another step's failure.
  if (!before || before.state !== state) return !before || state === "discarded";
  return (order.get(id) as number) < (order.get(before.id) as number);
}

/** Counts the ended jobs among these, by state. */
export async function countSteps(store: Store, ids: readonly JobId[]): Promise<StepCounts> {
  const states: Pick<JobRow, "state">[] = [];
  for await (const { state } of briefRowsOf(store, ids)) states.push({ state });
  return countsOf(states);
}

export function countsOf(rows: Iterable<Pick<JobRow, "state">>): StepCounts {
  const counts = { completed: 0, discarded: 0, cancelled: 0 };
  for (const { state } of rows)
    if (state === "completed" || state === "discarded" || state === "cancelled") counts[state] += 1;
  return counts;
}

function failureOf(
  { body: record }: StoredWorkflow,
  failed: JobRow | undefined,
  now: Instant,
): WorkflowFailure {
  const reason = record.endsAt !== null && now >= record.endsAt ? "timeout" : "step";
  if (!failed) return { reason };
  const message = failed.errors?.at(-1)?.message;
  return { reason, job: failed.id, type: failed.type, ...(message !== undefined && { message }) };
}
