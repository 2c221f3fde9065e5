import type { JobState } from "../core/job/job.ts";
import { printWhy, type Why, type WhyReason } from "../core/job/why/reason.ts";
import { instant, list, object } from "./read-job.ts";

/** The answer of a server to why a job does not run. */
export function readWhy(body: unknown): Why {
  const said = object(body, "reply");
  const heldBy = (said.held_by ?? null) as string | null;
  const why = {
    id: said.job_id as string,
    // As in the rows: a job that waits for its limit is pending there, and available on the wire.
    state: heldBy === null ? (said.state as JobState) : "pending",
    heldBy,
    at: instant(said.asked_at, "reply.asked_at") ?? 0,
    reasons: list(said.reasons, "reply.reasons").map((reason, index) =>
      readReason(reason, `reply.reasons[${index}]`),
    ),
  };
  return { ...why, toString: () => printWhy(why) };
}

function readReason(value: unknown, field: string): WhyReason {
  const { code, sentence, since, until, who, link, action } = object(value, field);
  const { name, target = null, text } = object(action, `${field}.action`);
  return {
    code: code as WhyReason["code"],
    sentence: sentence as string,
    since: instant(since, `${field}.since`),
    until: instant(until, `${field}.until`),
    who: (who ?? null) as WhyReason["who"],
    link: link as string,
    action: { name, target, text } as WhyReason["action"],
  };
}
