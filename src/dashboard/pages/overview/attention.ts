import type { HistoryPoint } from "../../../ojs/replies/history-replies.ts";
import type {
  BulkTarget,
  DeadLetterStats,
  Doctor,
  Job,
  Page,
  Queue,
  WireEvent,
  Worker,
} from "../../../ojs/replies/wire-replies.ts";
import type { MarkName } from "../../ui/drawings.ts";
import { ageText, countText, durationText, plural, shortId } from "../../ui/format.ts";
import type { Tone } from "../../ui/look.ts";
import { deadlineOf } from "./deadlines.ts";

/** Something that somebody should do something about. */
export interface Concern {
  readonly id: string;
  readonly mark: MarkName;
  readonly tone: Tone;
  /** What is, in one sentence; then what follows from it. */
  readonly title: string;
  readonly text: string;
  readonly since: string;
  readonly action: string;
  /** A path below the base. */
  readonly to: string;
  /** What can be tried again from here, and how many are known of. */
  readonly retry?: { readonly target: BulkTarget; readonly count: number };
}

/** What the overview has read. What could not be read is left out, and nothing is said about it. */
export interface Seen {
  readonly now: number;
  readonly queues: readonly Queue[];
  readonly workers: readonly Worker[];
  readonly active: Page<Job> | undefined;
  readonly waiting: Page<Job> | undefined;
  readonly deadLetters: DeadLetterStats | undefined;
  readonly history: readonly HistoryPoint[];
  readonly stuck: readonly WireEvent[];
  /** Left out where the role may not ask the doctor. */
  readonly doctor: Doctor | undefined;
  readonly pausedAll:
    | { readonly enabled: boolean; readonly reason: string | null; readonly started_at: string | null }
    | undefined;
}

const HOUR = 3_600_000;
const SOON = 5 * 60_000;

/** Everything that needs attention, the worst first. */
export function concernsOf(seen: Seen): Concern[] {
  return [
    ...pausedAll(seen),
    ...stuckHandlers(seen),
    ...unattendedQueues(seen),
    ...endingSoon(seen),
    ...deadLetters(seen),
    ...silentWorkers(seen),
    ...clocksThatDiffer(seen),
    ...pausedQueues(seen),
    ...failures(seen),
  ];
}

function pausedAll({ pausedAll: paused, now }: Seen): Concern[] {
  if (!paused?.enabled) return [];
  const since = paused.started_at === null ? "" : `for ${ageText(now - Date.parse(paused.started_at))}`;
  const why = paused.reason ? `Reason: ${paused.reason}. ` : "";
  return [
    {
      id: "maintenance",
      mark: "paused",
      tone: "soft",
      title: "No job of any queue is handed out",
      text: `${why}Deadlines run on while it lasts.`,
      since,
      action: "Show waiting",
      to: "jobs?state=available",
    },
  ];
}

function stuckHandlers({ stuck, now }: Seen): Concern[] {
  const recent = stuck.filter(({ time }) => now - Date.parse(time) < HOUR);
  const last = recent.at(-1);
  if (!last) return [];
  const jobs = new Set(recent.map(({ subject }) => subject));
  const type = String(last.data.job_type ?? "");
  return [
    {
      id: "stuck",
      mark: "stuck",
      tone: "force",
      title: `${plural(recent.length, "handler")} ran on past the verdict in the last hour`,
      text: `${type} ignores its signal. Its writes are refused and its slots are free, but its process should be looked at.`,
      since: `${ageText(now - Date.parse(last.time))} ago`,
      action: jobs.size === 1 ? "Open the job" : "Open the last",
      to: `jobs/${last.subject ?? ""}`,
    },
  ];
}

function unattendedQueues({ queues, workers, waiting, now }: Seen): Concern[] {
  const worked = new Set(
    workers.filter(({ state }) => state !== "stale").flatMap(({ queues: names }) => names),
  );
  // A worker that names no queues takes from all of them.
  if (workers.some(({ queues: names, state }) => names.length === 0 && state !== "stale")) return [];
  return queues
    .filter(({ name, counts, paused }) => counts.available > 0 && !worked.has(name) && !paused)
    .map(({ name, counts }) => {
      const own = (waiting?.items ?? []).filter(({ queue }) => queue === name);
      const oldest = Math.min(now, ...own.map(({ created_at }) => Date.parse(created_at)));
      const first = Math.min(...own.map((job) => deadlineOf(job)?.at ?? Number.POSITIVE_INFINITY));
      const expiry = Number.isFinite(first)
        ? ` The first of them expires in ${durationText(Math.max(0, first - now))}.`
        : "";
      return {
        id: `queue ${name}`,
        mark: "pending" as const,
        tone: "force" as const,
        title: `Nobody works on queue ${name}`,
        text: `${plural(counts.available, "job waits", "jobs wait")}${own.length > 0 ? `, the oldest for ${durationText(now - oldest)}` : ""}.${expiry}`,
        since: own.length > 0 ? `for ${ageText(now - oldest)}` : "now",
        action: "Show jobs",
        to: `jobs?state=available&queue=${encodeURIComponent(name)}`,
      };
    });
}

function endingSoon({ active, now }: Seen): Concern[] {
  const near = (active?.items ?? [])
    .map(deadlineOf)
    .filter((one) => one !== null)
    .filter(({ at }) => at - now < SOON);
  if (near.length === 0) return [];
  const inGrace = near.filter(({ at }) => at <= now).length;
  const byTotal = near.filter(({ kind }) => kind === "total").length;
  const parts = [
    inGrace > 0 ? `${inGrace} in grace already` : "",
    byTotal > 0 ? `${byTotal} by total` : "",
    near.length - byTotal > 0 ? `${near.length - byTotal} by attempt` : "",
  ].filter((part) => part !== "");
  const [top, count] = mostCommon(near.map(({ job }) => job.type));
  const isPart = active?.pagination.has_more ? ` Of the newest ${active.items.length} that run.` : "";
  return [
    {
      id: "ending",
      mark: "grace",
      tone: "soft",
      title: `${plural(near.length, "job ends", "jobs end")} within 5 minutes unless ${near.length === 1 ? "it finishes" : "they finish"} first`,
      text: `${parts.join(", ")}. ${count} of them ${count === 1 ? "is" : "are"} ${top}.${isPart}`,
      since: "now",
      action: near.length === 1 ? "Open the job" : "Show running",
      to: near.length === 1 ? `jobs/${near[0]?.job.id}` : "jobs?state=active",
    },
  ];
}

function mostCommon(names: readonly string[]): readonly [string, number] {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0] ?? ["", 0];
}

function deadLetters({ deadLetters: letters, now }: Seen): Concern[] {
  if (!letters || letters.total === 0 || letters.newest_at === null) return [];
  const age = now - Date.parse(letters.newest_at);
  if (age > 24 * HOUR) return [];
  const [type] = Object.entries(letters.by_type).sort((a, b) => b[1] - a[1])[0] ?? [""];
  const [error] = Object.entries(letters.by_error_type).sort((a, b) => b[1] - a[1])[0] ?? [""];
  const count = `${countText(letters.total)}${letters.total_is_exact ? "" : "+"}`;
  const waits = `${count} ${letters.total === 1 ? "waits" : "wait"} for somebody`;
  return [
    {
      id: "dead letters",
      mark: "dead",
      tone: "force",
      title: age < HOUR ? `Dead letters grow: ${waits}` : `Dead letters: ${waits}`,
      text: `Most are ${type} with ${error}. Retried, their attempts start anew.`,
      since: `newest ${ageText(age)} ago`,
      action: "Show them",
      to: "dead-letters",
      retry: { target: { filter: { dead_letter: true } }, count: letters.total },
    },
  ];
}

function silentWorkers({ workers, now }: Seen): Concern[] {
  return workers
    .filter(({ state }) => state === "stale")
    .map(({ id, active_jobs, last_heartbeat_at }) => ({
      id: `worker ${id}`,
      mark: "silent" as const,
      tone: "soft" as const,
      title: `Worker ${shortId(id)} is silent`,
      text:
        active_jobs === 0
          ? "It holds no jobs."
          : `It holds ${plural(active_jobs, "job")}. If it does not beat, others take them over.`,
      since: `for ${ageText(now - Date.parse(last_heartbeat_at))}`,
      action: "Open worker",
      to: `workers?worker=${encodeURIComponent(id)}`,
    }));
}

/** The doctor compares the clock of the server's machine with the store's. */
function clocksThatDiffer({ doctor }: Seen): Concern[] {
  return (doctor?.findings ?? [])
    .filter(({ code }) => code === "clock_offset")
    .map(({ sentence, action }) => ({
      id: "clocks",
      mark: "info" as const,
      tone: "soft" as const,
      title: sentence.replace(/\.$/, ""),
      text: action,
      since: "now",
      action: "Show system",
      to: "system",
    }));
}

function pausedQueues({ queues, now }: Seen): Concern[] {
  return queues
    .filter(({ paused, depth }) => paused && depth > 0)
    .map(({ name, depth, paused_at }) => ({
      id: `paused ${name}`,
      mark: "paused" as const,
      tone: "soft" as const,
      title: `Queue ${name} is paused and ${plural(depth, "job waits", "jobs wait")}`,
      text: "Deadlines run on while it is paused.",
      since: paused_at ? `for ${ageText(now - Date.parse(paused_at))}` : "",
      action: "Show jobs",
      to: `jobs?queue=${encodeURIComponent(name)}`,
    }));
}

/** Many failures, beside what is usual in the same range. */
function failures({ history, now }: Seen): Concern[] {
  const recent = history.filter(({ timestamp }) => now - Date.parse(timestamp) < HOUR);
  const failed = recent.reduce((sum, point) => sum + point.failed, 0);
  const processed = recent.reduce((sum, point) => sum + point.processed, 0);
  if (failed < 10 || failed / Math.max(1, processed) < 0.1) return [];
  return [
    {
      id: "failures",
      mark: "retry",
      tone: "soft",
      title: `${Math.round((failed / processed) * 100)} % of attempts failed in the last hour`,
      text: `${plural(failed, "attempt")} of ${processed}.`,
      since: "",
      action: "Show discarded",
      to: "jobs?state=discarded&last=1h",
    },
  ];
}
