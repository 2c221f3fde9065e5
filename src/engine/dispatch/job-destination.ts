import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import { rankOf } from "../../core/job/job.ts";
import { tenantOf } from "../../core/tenant/tenant-name.ts";
import type { Instant } from "../../core/time.ts";
import type { TimeoutRow } from "../../core/timeout/timeout.ts";
import type { EngineContext } from "../context.ts";
import type { Delivery, DeliveryLease, Destination } from "./destination.ts";

/** Every engine serves this destination, so any running engine enqueues the job. */
export const JOB_DESTINATION = "job";

type JobDestinationContext = Pick<EngineContext, "committer" | "clock" | "recorder">;

/** Enqueues the job and removes its timeout in one commit, so repeated deliveries enqueue it once. */
export class JobDestination implements Destination {
  readonly #context: JobDestinationContext;
  readonly #toTenant: Destination["deliver"];

  /** `toTenant` enqueues the job of a tenant within its scope. */
  constructor(context: JobDestinationContext, toTenant: Destination["deliver"]) {
    this.#context = context;
    this.#toTenant = toTenant;
  }

  async deliver(row: TimeoutRow, lease: DeliveryLease): Promise<Delivery> {
    if (tenantOf(row.id) !== undefined) return this.#toTenant(row, lease);
    const { owner } = lease;
    const { committer, clock, recorder } = this.#context;
    const job = recorder.enqueued(createdAt(JSON.parse(row.payload ?? "null") as NewJob, clock.now()));
    await committer.commit({
      when: [{ timeout: row.id, owner }],
      effects: [{ enqueue: job }, { remove: row.id }],
    });
    // A refused unit had lost its lease: the process that holds the timeout now enqueues the job.
    return "done";
  }
}

/** Counts the job's budgets from its enqueue, so that a late timeout does not shorten them. */
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
