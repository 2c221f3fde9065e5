import type { JobRow } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import type { EngineContext } from "../context.ts";

/** Announces the heartbeat of a job after its new `stallAt` is written. */
export function announceHeartbeat(
  { bus, clock }: Pick<EngineContext, "bus" | "clock">,
  row: JobRow,
  visibleUntil: Instant,
): void {
  if (bus.wants("job.heartbeat"))
    bus.emit({ ...bus.detail(row, "job.heartbeat", clock.now()), visibleUntil });
}
