import type { Job } from "../../../ojs/replies/wire-replies.ts";
import { enqueueCopy, readJob } from "../../api/jobs.ts";
import { type Toast, toast } from "../../state/toasts.ts";
import { plural } from "../../ui/format.ts";
import { anewOf } from "../job/copy-job.ts";

/** Enqueues anew what a bulk cancel has ended, as far as these jobs waited before it. */
export function undoOfAll(waiting: readonly Job[]): Toast["action"] {
  if (waiting.length === 0) return undefined;
  const run = async () => {
    let count = 0;
    for (const before of waiting) {
      // Only what the cancel has really ended: a job that started meanwhile may have completed.
      const now = await readJob(before.id);
      if (!now.ok || now.data.state !== "cancelled" || now.data.attempt !== before.attempt) continue;
      const made = await enqueueCopy(before.id, anewOf(before));
      if (!made.ok)
        return toast(`${plural(count, "job")} enqueued anew, then it stopped: ${made.error.message}`, {
          kind: "failed",
        });
      count += 1;
    }
    toast(`${plural(count, "job")} enqueued anew.`);
  };
  return { label: "Undo", run: () => void run() };
}
