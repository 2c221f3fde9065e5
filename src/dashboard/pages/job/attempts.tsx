import type { Job, JobError, WireEvent } from "../../../ojs/replies/wire-replies.ts";
import { readProgress } from "../../api/jobs.ts";
import { useResource } from "../../api/resource.ts";
import { now } from "../../state/clock.ts";
import { attemptText } from "../../ui/attempts.ts";
import { Badge } from "../../ui/badge.tsx";
import { Card } from "../../ui/card.tsx";
import type { MarkName } from "../../ui/drawings.ts";
import { durationText, shortId } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { JsonTree } from "../../ui/json-tree.tsx";
import type { Tone } from "../../ui/look.ts";
import { Time } from "../../ui/time.tsx";
import { StackTrace } from "./stack-trace.tsx";
import { type Run, runsOf } from "./timeline/runs.ts";

/** The attempts, the newest first and open. */
export function Attempts({ job, events }: { readonly job: Job; readonly events: readonly WireEvent[] }) {
  const runs = runsOf(job, events).reverse();
  if (runs.length === 0) return null;
  return (
    <Card title="Attempts" note={attemptText(job)}>
      {runs.map((run, index) => (
        <Attempt
          key={`${run.attempt} ${run.from}`}
          run={run}
          job={job}
          isOpen={index === 0 || runs.length <= 2}
        />
      ))}
    </Card>
  );
}

function lookOfRun(run: Run): { readonly mark: MarkName; readonly tone: Tone; readonly word: string } {
  if (run.end === "running") return { mark: "running", tone: "run", word: "Running" };
  if (run.end === "completed")
    return run.isLate
      ? { mark: "late", tone: "soft", word: "Completed late" }
      : { mark: "done", tone: "done", word: "Completed" };
  if (run.end === "cancelled") return { mark: "cancelled", tone: "off", word: "Cancelled" };
  if (run.isForced) return { mark: "discarded", tone: "force", word: "Killed" };
  const words = {
    stalled: "Stalled",
    execution: "Timed out",
    total: "Out of time",
    enqueue_ttl: "Expired",
  } as const;
  const kind = run.error?.timeout_kind;
  return { mark: "discarded", tone: "force", word: kind ? words[kind] : "Failed" };
}

function Attempt({ run, job, isOpen }: { readonly run: Run; readonly job: Job; readonly isOpen: boolean }) {
  const { error } = run;
  return (
    <details class="att" open={isOpen}>
      <summary>
        <Icon name="right" small />
        <b>Attempt {run.attempt}</b>
        <Badge look={lookOfRun(run)} />
        <span class="when-shut">
          {run.end === "running" ? (
            <ProgressBar id={job.id} value={job.progress} />
          ) : (
            <span class="clip t3 shut-only">{error?.message}</span>
          )}
        </span>
        <span class="nowrap">{durationText((run.to ?? now.value) - run.from)}</span>
      </summary>
      <div class="in">
        {error && <p class="err anywhere">{error.message}</p>}
        <p class="facts">
          <Moment name="began" at={run.from} />
          <Moment name="signal" at={run.softAt} />
          <Moment name="ended" at={run.to} />
          {run.worker && (
            <span>
              on{" "}
              <b class="mono" title={run.worker}>
                {shortId(run.worker)}
              </b>
            </span>
          )}
          {error?.code && error.code !== error.type && (
            <span>
              code <b class="mono">{error.code}</b>
            </span>
          )}
          {run.isStuck && <span class="is-force bad">its handler ran on past the verdict</span>}
        </p>
        {error && <ErrorDetails error={error} />}
      </div>
    </details>
  );
}

function Moment({ name, at }: { readonly name: string; readonly at: number | null }) {
  if (at === null) return null;
  return (
    <span>
      {name}{" "}
      <b>
        <Time at={at} as="clock" />
      </b>
    </span>
  );
}

/** How far the running attempt says it is, and its own word for it. */
function ProgressBar({ id, value }: { readonly id: string; readonly value: number | undefined }) {
  const said = useResource(
    value === undefined ? null : `progress ${id}`,
    (signal) => readProgress(id, signal),
    {
      live: 2_000,
    },
  );
  if (value === undefined) return null;
  return (
    <span class="prog">
      <svg role="img" aria-label={`${Math.round(value * 100)} % done`}>
        <rect class="dl-track" width="100%" height="4" rx="2" />
        <rect class="dl-used" width={`${value * 100}%`} height="4" rx="2" />
      </svg>
      {Math.round(value * 100)} %{typeof said.data?.message === "string" && `, ${said.data.message}`}
    </span>
  );
}

function ErrorDetails({ error }: { readonly error: JobError }) {
  return (
    <>
      {error.cause && (
        <p class="cause anywhere">
          <span class="t3">caused by</span> {error.cause.type}
          {error.cause.code && (
            <>
              {" "}
              <span class="tag">{error.cause.code}</span>
            </>
          )}{" "}
          {error.cause.message}
        </p>
      )}
      {error.backtrace && error.backtrace.length > 0 && (
        <StackTrace
          lines={error.backtrace}
          isHang={error.forced === true || error.timeout_kind !== undefined}
          label={`Stack of attempt ${error.attempt}, ${error.occurred_at}`}
        />
      )}
      {error.details !== undefined && <JsonTree value={error.details} what="the details" />}
    </>
  );
}
