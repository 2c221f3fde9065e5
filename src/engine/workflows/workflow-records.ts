import type { JobId, JobRow } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import { decodePlan, type Plan } from "../../core/workflow/plan.ts";
import { decodeWorkflow, encodeWorkflow, type WorkflowRecord } from "../../core/workflow/workflow-record.ts";
import type { Effect, Guard, RecordKey, RecordRow, Store } from "../../ports/store.ts";

/** So many jobs of a workflow are read or written in one call: payloads come with them. */
const PAGE = 500;

export const WORKFLOW = "workflow";

export function workflowKey(id: string): RecordKey {
  return [WORKFLOW, id];
}

export function planKey(id: string): RecordKey {
  return ["workflow.plan", id];
}

export function resultKey(id: string): RecordKey {
  return ["workflow.result", id];
}

/** A workflow as it was read, with the version under which it may be written. */
export interface StoredWorkflow {
  readonly id: string;
  readonly version: number;
  readonly record: WorkflowRecord;
}

export function storedWorkflow(row: RecordRow): StoredWorkflow {
  return { id: row.key[1], version: row.version, record: decodeWorkflow(row.body) };
}

export async function loadWorkflow(store: Store, id: string): Promise<StoredWorkflow | null> {
  const [row] = await store.records.load([workflowKey(id)]);
  return row ? storedWorkflow(row) : null;
}

export async function loadPlan(store: Store, id: string): Promise<Plan | null> {
  const [row] = await store.records.load([planKey(id)]);
  return row ? decodePlan(row.body) : null;
}

export function guardOf({ id, version }: StoredWorkflow): Guard {
  return { record: workflowKey(id), version };
}

export function putOf(id: string, record: WorkflowRecord, wakeAt: Instant | null): Effect {
  return { put: workflowKey(id), body: encodeWorkflow(record), wakeAt };
}

export function pagesOf<Item>(items: readonly Item[], size = PAGE): Item[][] {
  const pages: Item[][] = [];
  for (let from = 0; from < items.length; from += size) pages.push(items.slice(from, from + size));
  return pages;
}

/** Rows of jobs, page by page; those that are gone are left out. */
export async function* rowsOf(store: Store, ids: readonly JobId[]): AsyncGenerator<JobRow, void, undefined> {
  for (const page of pagesOf(ids)) for (const row of await store.jobs.load(page)) if (row !== null) yield row;
}
