import { z } from "zod";
import { instant } from "./replies.ts";

/** Replies about fair queues. */

const count = z.int().min(0);

/** How a fetch chooses among queues. */
export const poolStrategy = z.enum(["strict", "round-robin", "weighted", "least-loaded"]);
export const queueWeights = z.record(z.string().max(255), z.int().min(1).max(1_000));

export const sharesReply = z
  .looseObject({
    queue: z.string(),
    fair: z.boolean(),
    items: z.array(
      z.looseObject({
        key: z.string().meta({ description: "Empty: the jobs without a key." }),
        weight: z.int().min(1),
        share: z.number().min(0).max(1),
        waiting: count,
        next_due_at: instant,
      }),
    ),
    has_more: z.boolean(),
  })
  .meta({ id: "QueueShares" });

const scheduling = z.looseObject({
  queues: z.array(
    z
      .looseObject({
        name: z.string(),
        dispatch_count: count,
        dispatch_ratio: z.number().min(0).max(1),
        median_wait_ms: z.number().nullable(),
        active_jobs: count,
        available_jobs: count,
      })
      .meta({ id: "SchedulingQueue" }),
  ),
  fair_queues: z.array(sharesReply),
  window: z.string(),
});

export const schedulingReply = scheduling.extend({ stats: scheduling }).meta({ id: "SchedulingStats" });
