import type { JobId, JobRow } from "../../core/job/job.ts";
import type { Json } from "../../core/schema.ts";
import type { Plan } from "../../core/workflow/plan.ts";
import type { WorkflowRecord } from "../../core/workflow/workflow-record.ts";
import type { Store } from "../../ports/store.ts";
import { recordKind, type StoredRecord } from "../commit/record-kind.ts";
import { loadInParts, PART_SIZE } from "../find/bounded-reader.ts";

/** One call reads or writes at most this many jobs of a workflow, because rows contain payloads. */
const PAGE = 500;

/** Each is named by the id of its workflow. */
export const WORKFLOWS = recordKind<WorkflowRecord>("workflow");
export const PLANS = recordKind<Plan>("workflow.plan");
export const RESULTS = recordKind<WorkflowResult>("workflow.result");

/** The result of a workflow. */
export interface WorkflowResult {
  readonly value: Json;
  /** The result as people may see it, if a step that it is made of hides a part. */
  readonly visible?: Json;
}

/** A workflow as it was read, with the version under which it may be written. */
export type StoredWorkflow = StoredRecord<WorkflowRecord>;

export async function loadPlan(store: Store, id: string): Promise<Plan | null> {
  return (await PLANS.load(store, id))?.body ?? null;
}

export function pagesOf<Item>(items: readonly Item[], size = PAGE): Item[][] {
  const pages: Item[][] = [];
  for (let from = 0; from < items.length; from += size) pages.push(items.slice(from, from + size));
  return pages;
}

/** The brief rows of these jobs; deleted jobs are left out. */
export async function* briefRowsOf(
  store: Store,
  ids: readonly JobId[],
): AsyncGenerator<JobRow, void, undefined> {
  for await (const row of loadInParts(store, ids, { isBrief: true })) if (row !== null) yield row;
}

/**
 * The rows of these jobs; deleted jobs are left out. They are whole until their results have more than `most`
 * characters together: from then on nobody can use a result, and the rows are brief.
 */
export async function* rowsOf(
  store: Store,
  ids: readonly JobId[],
  most: number,
): AsyncGenerator<JobRow, void, undefined> {
  let [size, read] = [0, 0];
  // A row has other documents beside its result.
  const part = Math.min(PART_SIZE, 4 * most);
  for await (const row of loadInParts(store, ids, { size: part })) {
    read += 1;
    if (row === null) continue;
    size += row.result?.length ?? 0;
    yield row;
    if (size > most) break;
  }
  yield* briefRowsOf(store, ids.slice(read));
}
