import { progressOf } from "../../core/job/documents/job-progress.ts";
import type { JobRow } from "../../core/job/job.ts";
import { childrenOf, finalsOf, type PlanNode, stepsOf } from "../../core/workflow/plan.ts";
import { loadBrief, loadInParts } from "../../engine/find/bounded-reader.ts";
import { loadPlan } from "../../engine/workflows/workflow-records.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import type { Store } from "../../ports/store.ts";

/** Steps up to this number are shown. Larger workflows show counts only. */
const MOST_STEPS = 200;

/** The first steps of a workflow, with the names that the client gave them and those that each waits for. */
export async function firstSteps(store: Store, id: string) {
  const plan = await loadPlan(store, id);
  if (!plan) return [];
  const ids = stepsOf(plan.root).slice(0, MOST_STEPS);
  const rows = await loadBrief(store, ids);
  const names = new Map<string, string>();
  for (const row of rows) if (row) names.set(row.id, nameOf(row));
  const before = waitsOf(plan.root);
  const progress = await progressOfRunning(store, rows);
  return rows.flatMap((row) => {
    if (!row) return [];
    const dependsOn = (before.get(row.id) ?? []).map((job) => names.get(job) ?? job);
    return [stepFields(row, row.state === "completed" ? 1 : (progress.get(row.id) ?? null), dependsOn)];
  });
}

/** How far the steps are that said so and have not completed. A note of progress may be large, so it is not kept. */
async function progressOfRunning(store: Store, rows: readonly (JobRow | null)[]) {
  const ids = rows.flatMap((row) =>
    row && row.progress !== null && row.state !== "completed" ? [row.id] : [],
  );
  const values = new Map<string, number | null>();
  for await (const row of loadInParts(store, ids))
    if (row) values.set(row.id, progressOf(row)?.value ?? null);
  return values;
}

function nameOf({ id, options }: JobRow): string {
  const fields = options?.wire?.fields as { readonly step_id?: unknown } | undefined;
  const name = fields?.step_id;
  return typeof name === "string" ? name : id;
}

/** For each step, the steps that must end before it starts. */
function waitsOf(root: PlanNode): ReadonlyMap<string, readonly string[]> {
  const waits = new Map<string, readonly string[]>();
  const walk = (node: PlanNode, before: readonly string[]): readonly string[] => {
    if ("step" in node) {
      waits.set(node.step, before);
      return [node.step];
    }
    if ("chain" in node) return node.chain.reduce((ends, inner) => walk(inner, ends), before);
    if ("graph" in node) {
      for (const { node: inner, after } of node.graph) {
        const ends = after.flatMap((place) => finalsOf(node.graph[place]?.node as PlanNode));
        walk(inner, after.length === 0 ? before : ends);
      }
      return finalsOf(node);
    }
    return childrenOf(node).flatMap((inner) => walk(inner, before));
  };
  walk(root, []);
  return waits;
}

function stepFields(row: JobRow, progress: number | null, dependsOn: readonly string[]) {
  const { id, type, state, startedAt, finishedAt } = row;
  return {
    id: nameOf(row),
    job_id: id,
    job_ids: [id],
    type,
    state,
    progress,
    depends_on: dependsOn.slice(0, MOST_STEPS),
    ...(startedAt !== null && { started_at: instantText(startedAt) }),
    ...(finishedAt !== null && { completed_at: instantText(finishedAt) }),
  };
}
