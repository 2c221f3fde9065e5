import type { Job } from "../../../ojs/replies/wire-replies.ts";
import { mostAttempts } from "../../ui/attempts.ts";

const LIMITS = [
  "timeout_ms",
  "total_timeout_ms",
  "enqueue_ttl_ms",
  "grace_period_ms",
  "heartbeat_timeout_ms",
  "timeout_mode",
] as const;

/** What a new job like this one is made of, as the interface takes it: its limits and attempts too. */
export function copyOf(job: Job): Readonly<Record<string, unknown>> {
  const limits = LIMITS.filter((name) => job[name] !== undefined).map((name) => [name, job[name]] as const);
  const most = mostAttempts(job);
  return {
    type: job.type,
    args: job.args,
    ...(Object.keys(job.meta).length > 0 && { meta: job.meta }),
    options: {
      queue: job.queue,
      ...(job.priority !== 0 && { priority: job.priority }),
      ...Object.fromEntries(limits),
      // A definition that nobody has asked keeps its say.
      ...(most !== undefined && { retry: { max_attempts: most } }),
    },
  };
}
