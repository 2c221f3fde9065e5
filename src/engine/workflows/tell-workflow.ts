import type { NewEvent } from "../../core/event/new-event.ts";
import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import type { WorkflowRecord } from "../../core/workflow/record.ts";
import type { EngineEvent, EventBus } from "../bus.ts";
import type { EventRecorder } from "../events/recorder.ts";
import type { WorkflowEventDetail, WorkflowEventName } from "./events.ts";

/** Tells what became of a workflow, once that is committed. */
export function tellWorkflow(bus: EventBus, workflow: string, record: WorkflowRecord, at: Instant): void {
  const name = nameOf(record);
  if (!bus.wants(name)) return;
  const detail: WorkflowEventDetail = { name, workflow, at, ...moreOf(record) };
  bus.emit(detail as EngineEvent);
}

/** The same, as effects of the unit that commits it: none while events are not recorded. */
export function workflowEffects(
  recorder: EventRecorder,
  workflow: string,
  record: WorkflowRecord,
  at: Instant,
): readonly NewEvent[] {
  if (!recorder.isOn) return [];
  const data = moreOf(record) as unknown as { readonly [key: string]: Json };
  return recorder.effects(nameOf(record), { at, subject: workflow, data });
}

function nameOf({ state }: WorkflowRecord): WorkflowEventName {
  return state === "running" ? "workflow.started" : `workflow.${state}`;
}

function moreOf(record: WorkflowRecord): Omit<WorkflowEventDetail, "name" | "workflow" | "at"> {
  const { kind, name: title, total, startedAt, endedAt, failure } = record;
  return {
    kind,
    title,
    total,
    ...(endedAt !== null && { elapsed: endedAt - startedAt }),
    ...(failure && { failure }),
  };
}
