import type { Job, JobError, WireEvent } from "../../../../ojs/replies/wire-replies.ts";

/** One attempt as it happened. */
export interface Run {
  readonly attempt: number;
  readonly from: number;
  /** Null while it runs. */
  readonly to: number | null;
  readonly worker?: string | undefined;
  readonly end: "running" | "completed" | "failed" | "cancelled";
  readonly error?: JobError | undefined;
  /** When it was told to stop, if it was. */
  readonly softAt: number | null;
  /** It was ended by force. */
  readonly isForced: boolean;
  /** It completed after the signal. */
  readonly isLate: boolean;
  /** Its handler ran on past the verdict. */
  readonly isStuck: boolean;
  /** When that handler ended after all; null while it runs on, or if nobody saw it end. */
  readonly freedAt: number | null;
  readonly beats: readonly number[];
}

const ENDS: Readonly<Record<string, Run["end"]>> = {
  "job.completed": "completed",
  "job.cancelled": "cancelled",
  "job.failed": "failed",
  "job.timeout": "failed",
  "job.total_timeout": "failed",
  "job.stalled": "failed",
  "job.retrying": "failed",
  "job.discarded": "failed",
  "job.snoozed": "failed",
  "job.released": "failed",
};
const BEATS = new Set(["job.progress", "job.heartbeat"]);

const at = (text: string | undefined): number | null => (text === undefined ? null : Date.parse(text));

export function endedAt(job: Job): number | null {
  return at(job.discarded_at ?? job.cancelled_at ?? job.completed_at);
}

/** The attempts of a job, oldest first: from its events where they are kept, else from what the job itself remembers. */
export function runsOf(job: Job, events: readonly WireEvent[]): Run[] {
  const ordered = events
    .map((event) => ({ ...event, at: Date.parse(event.time), attempt: Number(event.data.attempt ?? 0) }))
    .sort((a, b) => a.at - b.at || Number(b.type === "job.started") - Number(a.type === "job.started"));
  const starts = ordered.filter(({ type }) => type === "job.started");
  if (starts.length === 0) return rememberedRuns(job);
  // Events that are too old were not found: the job itself remembers how these attempts ended.
  const first = starts[0]?.at ?? 0;
  const earlier = rememberedRuns(job).filter(
    ({ attempt, to }) => to !== null && to <= first && !wasSeen(starts, attempt),
  );
  const seen = starts.map((start, index) => {
    const until = starts[index + 1]?.at ?? Number.POSITIVE_INFINITY;
    const own = ordered.filter(
      (event) => event.at >= start.at && event.at < until && event.attempt === start.attempt,
    );
    const ends = own.filter(({ type }) => type in ENDS);
    const last = ends[0];
    const said = ends
      .map(({ data }) => (data.error ?? data.last_error) as JobError | undefined)
      .find(Boolean);
    const error =
      job.errors?.find((one) => one.attempt === start.attempt && one.occurred_at === said?.occurred_at) ??
      said;
    const to = last?.at ?? (index < starts.length - 1 ? until : endedAt(job));
    return runOf(job, {
      attempt: start.attempt,
      from: start.at,
      to,
      worker: start.data.worker_id as string | undefined,
      end: to === null ? "running" : ((last && ENDS[last.type]) ?? "failed"),
      error,
      isStuck: own.some(({ type }) => type === "job.stuck"),
      freedAt: own.find(({ type }) => type === "job.unstuck")?.at ?? null,
      beats: own.filter(({ type }) => BEATS.has(type)).map((event) => event.at),
    });
  });
  return [...earlier, ...seen];
}

const wasSeen = (starts: readonly { readonly attempt: number }[], attempt: number): boolean =>
  starts.some((start) => start.attempt === attempt);

type Seen = Omit<Run, "softAt" | "isForced" | "isLate">;

function runOf(job: Job, seen: Seen): Run {
  const limit = job.timeout_ms ?? null;
  const soft = limit === null ? null : seen.from + limit;
  const { to, error } = seen;
  const wasTold = soft !== null && to !== null && (to > soft || error?.timeout_kind === "execution");
  return {
    ...seen,
    softAt: wasTold ? soft : null,
    isForced: error?.forced === true,
    isLate: seen.end === "completed" && wasTold,
  };
}

function rememberedRuns(job: Job): Run[] {
  // A job that expired before its first start has an error, and no attempt that it belongs to.
  const errors = (job.errors ?? []).filter(({ attempt }) => attempt > 0);
  const past = errors.map((error) => {
    const to = Date.parse(error.occurred_at);
    const span = error.timeout_kind === "execution" ? (error.elapsed_seconds ?? 0) * 1_000 : 0;
    const seen = {
      attempt: error.attempt,
      from: to - span,
      to,
      end: "failed" as const,
      error,
      isStuck: false,
      freedAt: null,
      beats: [],
    };
    return runOf(job, seen);
  });
  const from = at(job.started_at);
  const last = past.at(-1);
  if (from === null || (last && last.to !== null && last.to >= from && job.state !== "active")) return past;
  const to = endedAt(job);
  const end =
    to === null
      ? "running"
      : job.state === "completed"
        ? "completed"
        : job.state === "cancelled"
          ? "cancelled"
          : "failed";
  const unseen = { isStuck: false, freedAt: null, beats: [] };
  return [...past, runOf(job, { attempt: job.attempt, from, to, end, ...unseen })];
}
