import type { Job } from "../../../ojs/replies/wire-replies.ts";
import { enqueueCopy } from "../../api/jobs.ts";
import { serverNow } from "../../state/clock.ts";
import { go, href } from "../../state/router.ts";
import { type Toast, toast } from "../../state/toasts.ts";
import { copyOf } from "./copy-body.ts";

/** The same at the same time, if that is still to come. */
export function anewOf(job: Job): Readonly<Record<string, unknown>> {
  const isAhead = job.scheduled_at !== undefined && Date.parse(job.scheduled_at) > serverNow();
  return { ...copyOf(job), ...(isAhead && { scheduled_at: job.scheduled_at }) };
}

/** A job that runs may have done half of its work, so only a waiting one is enqueued again by a single click. */
const WAITING = new Set<Job["state"]>(["available", "scheduled", "pending", "retryable"]);

/** What takes a cancel back: the cancelled job stays, and a new one does its work. */
export function undoOf(job: Job): Toast["action"] {
  if (!WAITING.has(job.state) || job.workflow_id !== undefined) return undefined;
  const run = async () => {
    const result = await enqueueCopy(job.id, anewOf(job));
    if (!result.ok)
      return toast(`It could not be enqueued anew: ${result.error.message}`, { kind: "failed" });
    toast("It is enqueued anew.");
    go(href(`jobs/${result.data.id}`));
  };
  return { label: "Undo", run: () => void run() };
}
