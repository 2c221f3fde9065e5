import { useMemo } from "preact/hooks";
import type { Events, Explanation, Job, WireEvent } from "../../../ojs/replies/wire-replies.ts";
import { readExplanation, readHistory, readJob } from "../../api/jobs.ts";
import { areRead, type Resource, useResource } from "../../api/resource.ts";
import type { PageProps } from "../../page-props.ts";
import { now } from "../../state/clock.ts";
import { href, query } from "../../state/router.ts";
import { withAttempts } from "../../ui/attempts.ts";
import { Badge, lookOf } from "../../ui/badge.tsx";
import { CopyButton } from "../../ui/button.tsx";
import { Callout, Empty, Failure, Skeleton, StaleNote } from "../../ui/callout.tsx";
import { PageHead } from "../../ui/card.tsx";
import { countText, readLimit, shortId } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { Time } from "../../ui/time.tsx";
import { JobActions } from "./actions.tsx";
import { Attempts } from "./attempts.tsx";
import { ExtendForm } from "./extend-form.tsx";
import { JobFacts, Payload } from "./facts.tsx";
import { InWorkflow, useWorkflowOf } from "./in-workflow.tsx";
import { useJobEvents } from "./live-job.ts";
import { JobLogs, useLogs } from "./logs.tsx";
import { extended, limitsOf } from "./timeline/limits.ts";
import { timelineOf } from "./timeline/model.ts";
import { Timeline } from "./timeline/timeline.tsx";
import { useWhy, Why } from "./why.tsx";

/** One job: its life and its limits, why it does what it does, and what can be done about it. */
export function Page({ params }: PageProps) {
  const id = params.id ?? "";
  const job = useResource(`job ${id}`, (signal) => readJob(id, signal), { live: 2_000 });
  const explanation = useResource(`explain ${id}`, (signal) => readExplanation(id, signal), { live: 2_000 });
  const history = useResource(`history ${id}`, (signal) => readHistory(id, signal), { live: 2_000 });
  const why = useWhy(id);
  const logs = useLogs(id);
  const workflow = useWorkflowOf(job.data);
  const reload = () => reloadAll(job, explanation, history);
  useJobEvents(id, reload);
  // All at once: a card that comes later pushes away what the viewer is about to press.
  if (!job.data || !areRead(explanation, history, why, logs, workflow)) return <Missing id={id} of={job} />;
  const shown = withAttempts(job.data, explanation.data);
  return (
    <>
      <Heading job={shown} onChange={reload} />
      <StaleNote of={job} what="The job" />
      {explanation.data ? (
        <LiveTimeline
          job={shown}
          explanation={explanation.data}
          events={history.data?.events ?? []}
          onChange={reload}
        />
      ) : explanation.error ? (
        <Failure what="The limits of this job" error={explanation.error} onRetry={explanation.reload} />
      ) : (
        <section class="card">
          <Skeleton rows={7} />
        </section>
      )}
      <div class="cols">
        <div>
          <Why reply={why} job={shown} />
          <Warnings of={explanation.data} />
          <InWorkflow job={shown} reply={workflow} />
          <Attempts job={shown} events={history.data?.events ?? []} />
          <SearchedNote job={shown} history={history.data} />
          <JobLogs logs={logs} />
        </div>
        <div>
          <JobFacts job={shown} events={history.data?.events ?? []} explanation={explanation.data} />
          <Payload job={shown} />
        </div>
      </div>
    </>
  );
}

/** The journal has no index by job. Where not all events of its life were searched, the page says so. */
function SearchedNote({ job, history }: { readonly job: Job; readonly history: Events | undefined }) {
  const from = history?.searched_from;
  if (!from || history.before == null || from <= job.created_at) return null;
  return (
    <p class="t3 small searched">
      {countText(history.scanned ?? 0)} events of all jobs were searched: those since{" "}
      <Time at={Date.parse(from)} />, and older ones around the instants that this job remembers. What lies
      between them is not shown.
    </p>
  );
}

function reloadAll(...all: readonly Pick<Resource<unknown>, "reload">[]): void {
  for (const one of all) one.reload();
}

function Missing({ id, of }: { readonly id: string; readonly of: Resource<Job> }) {
  if (!of.error) return <Skeleton />;
  return (
    <>
      <PageHead title="Job" />
      {of.error.status === 404 ? (
        <Empty icon="jobs" title="There is no such job">
          <p>
            {id.slice(0, 200)} never existed, or it ended and was kept no longer. Completed jobs are kept for
            24 hours unless a definition says otherwise.
          </p>
          <a href={href("jobs")}>To the list</a>
        </Empty>
      ) : (
        <Failure what="The job" error={of.error} onRetry={of.reload} />
      )}
    </>
  );
}

function Heading({ job, onChange }: { readonly job: Job; readonly onChange: () => void }) {
  return (
    <PageHead
      title={job.type}
      tab={`${job.type} ${shortId(job.id)}`}
      above={
        <nav class="crumb" aria-label="Where you are">
          <a href={href("jobs")}>Jobs</a>
          <Icon name="right" small />
          <a href={href("jobs", { type: job.type })}>{job.type}</a>
          <Icon name="right" small />
          <span class="mono">{shortId(job.id)}</span>
        </nav>
      }
      beside={<Badge look={lookOf(job, now.value)} pill />}
      below={
        <>
          <span class="id">{job.id}</span> <CopyButton text={job.id} what="the id" />
        </>
      }
    >
      <JobActions job={job} onChange={onChange} />
    </PageHead>
  );
}

interface LiveProps {
  readonly job: Job;
  readonly explanation: Explanation;
  readonly events: readonly WireEvent[];
  readonly onChange: () => void;
}

/** Redrawn once a second while the job lives: only this part of the page moves. */
function LiveTimeline({ job, explanation, events, onChange }: LiveProps) {
  const isExtending = query.value.get("form") === "extend" && !isOver(job);
  const attempt = readLimit(query.value.get("attempt") ?? "");
  const total = readLimit(query.value.get("total") ?? "");
  const limits = useMemo(() => limitsOf(job, explanation), [job, explanation]);
  const isPreview = isExtending && (attempt !== undefined || total !== undefined);
  const shown = isPreview ? extended(limits, job, { attempt, total }) : limits;
  const model = timelineOf({
    job,
    limits: shown,
    explanation,
    events,
    now: isOver(job) ? now.peek() : now.value,
    isPreview,
  });
  return (
    <Timeline model={model}>
      {isExtending && <ExtendForm job={job} before={limits} after={model} onDone={onChange} />}
    </Timeline>
  );
}

const isOver = ({ state }: Job) => state === "completed" || state === "discarded" || state === "cancelled";

function Warnings({ of }: { readonly of: Explanation | undefined }) {
  if (!of || of.warnings.length === 0) return null;
  return (
    <section class="card" aria-label="Warnings">
      <header>
        <h2>Warnings</h2>
      </header>
      <div class="body stack-gap">
        {of.warnings.map((text) => (
          <Callout key={text} tone="soft">
            <p>{text}</p>
          </Callout>
        ))}
      </div>
    </section>
  );
}
