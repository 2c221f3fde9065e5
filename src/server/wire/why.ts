import { z } from "zod";
import type { UnattendedQueue } from "../../core/doctor/doctor-facts.ts";
import { JOB_STATES } from "../../core/job/job.ts";
import { WHY_CODES, type WhyCode } from "../../core/job/why/codes.ts";
import type { Why, WhyReason } from "../../core/job/why/reason.ts";
import type { Instant } from "../../core/time.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import { instant } from "./replies.ts";

const reason = z
  .looseObject({
    code: z.enum(Object.keys(WHY_CODES) as [WhyCode, ...WhyCode[]]),
    sentence: z.string(),
    since: instant.nullable(),
    until: instant.nullable().meta({ description: "When it ends by itself; null if nobody can tell." }),
    who: z
      .looseObject({ kind: z.enum(["job", "worker", "queue", "limit", "workflow"]), id: z.string() })
      .nullable(),
    link: z.string(),
    action: z.looseObject({ name: z.string(), target: z.string().nullable(), text: z.string() }),
  })
  .meta({ id: "WhyReason" });

export const whyReply = z
  .looseObject({
    job_id: z.string(),
    state: z.enum(JOB_STATES),
    held_by: z
      .string()
      .optional()
      .meta({ description: "The key of the limit that an available job waits for." }),
    asked_at: instant,
    reasons: z.array(reason).min(1).meta({ description: "The first is the one to act on." }),
  })
  .meta({ id: "Why" });

export const unattendedReply = z
  .looseObject({
    queues: z.array(
      z.looseObject({
        queue: z.string(),
        waiting: z.int().min(1),
        has_more: z.boolean(),
        did_you_mean: z.string().nullable(),
      }),
    ),
  })
  .meta({ id: "UnattendedQueues" });

function atText(at: Instant | null): string | null {
  return at === null ? null : instantText(at);
}

function reasonFields({ since, until, ...rest }: WhyReason) {
  return { ...rest, since: atText(since), until: atText(until) };
}

/** The state is that of the job on the wire, where a job that only its limit holds is available. */
export function whyFields({ id, state, heldBy, at, reasons }: Why) {
  return {
    job_id: id,
    state: heldBy === null ? state : "available",
    ...(heldBy !== null && { held_by: heldBy }),
    asked_at: instantText(at),
    reasons: reasons.map(reasonFields),
  };
}

export function unattendedFields(queues: readonly UnattendedQueue[]) {
  return {
    queues: queues.map(({ queue, waiting, hasMore, didYouMean }) => ({
      queue,
      waiting,
      has_more: hasMore,
      did_you_mean: didYouMean,
    })),
  };
}
