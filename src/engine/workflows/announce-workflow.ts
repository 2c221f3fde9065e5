import type { NewEvent } from "../../core/event/new-event.ts";
import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import type { WorkflowRecord } from "../../core/workflow/workflow-record.ts";
import type { EngineEvent, EventBus } from "../events/event-bus.ts";
import type { EventRecorder } from "../events/event-recorder.ts";
import type { WorkflowEventDetail, WorkflowEventName } from "../events/workflow-events.ts";

function nameOf({ state }: WorkflowRecord): WorkflowEventName {
  return state === "running" ? "workflow.started" : `workflow.${state}`;
}

/** The event of a workflow's state, for the commit that stores it; none while recording is off. */
export function workflowEvents(
  recorder: EventRecorder,
  workflow: string,
  record: WorkflowRecord,
  at: Instant,
): readonly NewEvent[] {
  if (!recorder.isOn) return [];
  const { kind, name: title, total, startedAt, endedAt, failure } = record;
  const data = {
    workflow,
    kind,
    ...(title !== null && { name: title }),
    total,
    ...(endedAt !== null && { elapsed: endedAt - startedAt }),
    ...(failure && { failure: failure as unknown as Json }),
  };
  return recorder.effects(nameOf(record), { at, subject: workflow, data });
}

/** Announces the state of a workflow after its commit. */
export function announceWorkflow(bus: EventBus, workflow: string, record: WorkflowRecord, at: Instant): void {
  const { kind, name: title, total, startedAt, endedAt, failure } = record;
  const name = nameOf(record);
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
