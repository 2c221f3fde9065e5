import { type JobTemplate, type NewJob, stamp } from "../../core/job/envelope.ts";
import { rankOf } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import type { TimeoutRow } from "../../core/timeout/timeout.ts";
import type { EngineContext } from "../context.ts";
import type { Delivery, DeliveryLease, Destination } from "./destination.ts";

/** Every engine serves it, so the job is enqueued whoever is running. */
export const JOB_DESTINATION = "job";

/** A job that was prepared for an instant: all its own instants are counted from there. */
export function jobPayload(template: JobTemplate, payload: string, nextId: () => string): string {
  return JSON.stringify(stamp(template, payload, nextId));
}

type JobParts = Pick<EngineContext, "committer" | "clock" | "recorder">;

/** Enqueues the job and removes its timeout in one step, so it is enqueued once however often it is delivered. */
export class JobDestination implements Destination {
  readonly #parts: JobParts;

  constructor(parts: JobParts) {
    this.#parts = parts;
  }

  async deliver(row: TimeoutRow, { owner }: DeliveryLease): Promise<Delivery> {
    const { committer, clock, recorder } = this.#parts;
    const job = recorder.enqueued(createdAt(JSON.parse(row.payload ?? "null") as NewJob, clock.now()));
    await committer.commit({
      when: [{ timeout: row.id, owner }],
      effects: [{ enqueue: job }, { remove: row.id }],
    });
    // A unit that was refused had lost its lease: whoever has the timeout now enqueues the job.
    return "done";
  }
}

/** A timeout that is sent late takes nothing from the job's budgets: they are counted from when it is enqueued. */
function createdAt(job: NewJob, now: Instant): NewJob {
  const later = now - job.createdAt;
  const move = (at: Instant | null) => (at === null ? null : at + later);
  const { image } = job;
  return {
    ...job,
    createdAt: now,
    image: {
      ...image,
      rank: rankOf(job.priority, now),
      wakeAt: move(image.wakeAt),
      waitAt: move(image.waitAt),
      totalAt: move(image.totalAt),
    },
  };
}
