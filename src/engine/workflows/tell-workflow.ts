import type { Instant } from "../../core/time.ts";
import type { WorkflowRecord } from "../../core/workflow/record.ts";
import type { EngineEvent, EventBus } from "../bus.ts";
import type { WorkflowEventDetail, WorkflowEventName } from "./events.ts";

/** Tells what became of a workflow, once that is committed. */
export function tellWorkflow(bus: EventBus, workflow: string, record: WorkflowRecord, at: Instant): void {
  const { state, kind, name: title, total, startedAt, endedAt, failure } = record;
  const name: WorkflowEventName = state === "running" ? "workflow.started" : `workflow.${state}`;
  if (!bus.wants(name)) return;
  const detail: WorkflowEventDetail = {
    name,
    workflow,
    kind,
    title,
    at,
    total,
    ...(endedAt !== null && { elapsed: endedAt - startedAt }),
    ...(failure && { failure }),
  };
  bus.emit(detail as EngineEvent);
}
