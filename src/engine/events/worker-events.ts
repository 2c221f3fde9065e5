import { withoutStack } from "../../core/event/kept-event.ts";
import type { EngineEvents, EventBus, JobEventDetail } from "../bus.ts";
import type { EventRecorder } from "./recorder.ts";

/** What happens to a job in the process that runs it, without a commit that could tell of it. */
const NAMES = [
  "job.stuck",
  "job.unstuck",
  "job.lost",
  "job.killed",
  "job.unknown_type",
  "job.cleanup_failed",
] as const satisfies readonly (keyof EngineEvents)[];

/** Notes what only a worker's process can tell. It is rare, so that listening costs nothing. */
export function recordWorkerEvents({
  bus,
  recorder,
}: {
  readonly bus: EventBus;
  readonly recorder: EventRecorder;
}): void {
  for (const name of NAMES) {
    bus.on(name, ({ id, type, queue, attempt, at, elapsed, error, where }: JobEventDetail) =>
      recorder.note({
        name,
        at,
        job: id,
        type,
        queue,
        attempt,
        ...(elapsed !== undefined && { elapsed }),
        ...(error && { error: withoutStack(error) }),
        ...(where !== undefined && { data: { where } }),
      }),
    );
  }
}
