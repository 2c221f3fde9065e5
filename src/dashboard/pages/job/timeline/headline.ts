import { isLastAttempt } from "../../../ui/attempts.ts";
import { clockText, countdownText, durationText, limitText, shortId, whenText } from "../../../ui/format.ts";
import type { LimitName } from "../../../ui/look.ts";
import type { TimelineModel } from "./model.ts";

export interface Step {
  readonly title: string;
  readonly text: string;
  readonly tone?: "soft" | "force" | "done";
  /** It happens only if nothing better does. */
  readonly isMaybe?: boolean;
}

export interface Headline {
  readonly letter?: LimitName;
  readonly label: string;
  readonly value: string;
  /** What happens if nobody acts, or what happened. */
  readonly chain: readonly Step[];
}

export function headlineOf(model: TimelineModel): Headline {
  if (model.endedAt !== null) return ended(model);
  return model.running ? running(model) : waiting(model);
}

function running(model: TimelineModel): Headline {
  const { limits, running: run, now, next, prediction } = model;
  const { softAt, hardAt, totalAt, grace } = limits;
  if (!run) return waiting(model);
  const ran = durationText(now - run.from);
  const on = run.worker ? `, on ${shortId(run.worker)}` : "";
  const chain: Step[] = [
    {
      title: `Attempt ${run.attempt} runs`,
      text: `${ran}${limits.attempt === null ? "" : ` of ${limitText(limits.attempt)}`}${on}`,
    },
  ];
  if (softAt !== null) {
    const rest = grace === null ? "and nothing follows" : `then ${limitText(grace)} of grace`;
    const then = softAt === totalAt ? `total ends, ${rest}` : rest;
    chain.push({ title: `Signal ${clockText(softAt)}`, text: softAt <= now ? "given" : then, tone: "soft" });
  }
  if (hardAt !== null)
    chain.push({ title: `Kill ${clockText(hardAt)}`, text: afterKill(model), tone: "force", isMaybe: true });
  if (prediction?.fits)
    chain.push({
      title: `Attempt ${prediction.attempt} ${clockText(prediction.at)}`,
      text: totalAt === null ? "if it fails" : "fits into total",
      isMaybe: true,
    });
  // A total that cuts the attempt is its signal: grace and kill come after it.
  if (totalAt !== null && totalAt !== softAt)
    chain.push({ title: `Over ${whenText(totalAt, now)}`, text: "whatever happens", tone: "force" });
  if (softAt === null) return { label: "Runs for", value: ran, chain };
  const target = softAt > now ? softAt : hardAt;
  const isHeartbeat = next === "heartbeat" && limits.stallAt !== null;
  if (isHeartbeat)
    return {
      letter: "heartbeat",
      label: "Stalls in",
      value: countdownText((limits.stallAt ?? now) - now),
      chain,
    };
  if (target === null) return { label: "In grace for", value: durationText(now - softAt), chain };
  const label = softAt > now ? "Signal in" : "Kill in";
  return { ...(next && { letter: next }), label, value: countdownText(target - now), chain };
}

function afterKill({ prediction, job }: TimelineModel): string {
  if (prediction?.fits)
    return `then ${prediction.isExact ? "" : "about "}${durationText(prediction.backoff)} of backoff`;
  if (prediction) return "no further attempt fits";
  return isLastAttempt(job) ? "it was the last attempt" : "then a retry";
}

function waiting({ job, limits, now, next, createdAt }: TimelineModel): Headline {
  const { waitAt, totalAt, dueAt } = limits;
  const chain: Step[] = [
    { title: `Created ${whenText(createdAt, now)}`, text: `${durationText(now - createdAt)} ago` },
  ];
  if (dueAt > now)
    chain.push({
      title: `Attempt ${job.attempt + 1} ${whenText(dueAt, now)}`,
      text: job.state === "retryable" ? "after its backoff" : "as scheduled",
    });
  if (waitAt !== null && job.attempt === 0)
    chain.push({
      title: `Expires ${whenText(waitAt, now)}`,
      text: "if it has not begun",
      tone: "force",
      isMaybe: true,
    });
  if (totalAt !== null)
    chain.push({ title: `Over ${whenText(totalAt, now)}`, text: "whatever happens", tone: "force" });
  if (dueAt > now) {
    const label = job.state === "retryable" ? `Attempt ${job.attempt + 1} in` : "Starts in";
    return { label, value: countdownText(dueAt - now), chain };
  }
  const at = next === "wait" ? waitAt : totalAt;
  if (at === null || next === null)
    return { label: "Waits for", value: durationText(now - createdAt), chain };
  return {
    letter: next,
    label: next === "wait" ? "Expires in" : "Over in",
    value: countdownText(at - now),
    chain,
  };
}

function ended(model: TimelineModel): Headline {
  const { job, runs, createdAt, endedAt, now } = model;
  const chain: Step[] = [
    {
      title: `Created ${whenText(createdAt, now)}`,
      text: runs[0] ? `waited ${durationText(runs[0].from - createdAt)}` : "never started",
    },
  ];
  for (const run of runs.slice(-3)) {
    const text =
      run.end === "completed"
        ? `ran ${durationText((run.to ?? now) - run.from)}`
        : (run.error?.message ?? run.end);
    chain.push({
      title: `Attempt ${run.attempt} ${clockText(run.from)}`,
      text,
      ...(run.end === "failed" && { tone: "soft" as const }),
    });
  }
  const word = { completed: "Completed", cancelled: "Cancelled" }[job.state as string] ?? "Discarded";
  const tone = job.state === "completed" ? ("done" as const) : ("force" as const);
  chain.push({
    title: `${word} ${whenText(endedAt ?? now, now)}`,
    text: `after ${durationText((endedAt ?? now) - createdAt)}`,
    ...(job.state !== "cancelled" && { tone }),
  });
  return { label: `${durationText((endedAt ?? now) - createdAt)} in all`, value: verdictOf(model), chain };
}

/** How it ended, with its margin. */
function verdictOf({ job, runs, limits, endedAt }: TimelineModel): string {
  const last = runs.at(-1);
  const kind = job.error?.timeout_kind;
  if (job.state === "cancelled") return "Cancelled";
  if (job.state === "completed") {
    if (last?.isLate && last.softAt !== null && last.to !== null)
      return `Late by ${durationText(last.to - last.softAt)}`;
    const end = last && limits.attempt !== null ? last.from + limits.attempt : limits.totalAt;
    return end === null || endedAt === null ? "Completed" : `${durationText(end - endedAt)} to spare`;
  }
  if (kind === "enqueue_ttl") return `Not begun within ${limitText(limits.wait)}`;
  if (kind === "total") return "Out of time";
  if (last?.isForced && last.softAt !== null && last.to !== null)
    return `Killed ${durationText(last.to - last.softAt)} after the signal`;
  if (kind === "stalled") return "Stalled";
  return job.dead_letter ? "Dead letter" : "Discarded";
}
