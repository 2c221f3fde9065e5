import type { HistoryPoint } from "../../../ojs/replies/history-replies.ts";
import {
  type AuditEntry,
  JOB_STATES,
  type PriorityStats,
  type Queue,
  type QueueConfiguration,
  type Worker,
} from "../../../ojs/replies/wire-replies.ts";
import { readAudit, readPriorities, readQueue, readQueueHistory, readWorkers } from "../../api/operations.ts";
import { useResource } from "../../api/resource.ts";
import { serverNow } from "../../state/clock.ts";
import { href } from "../../state/router.ts";
import { whyNot } from "../../state/session.ts";
import { Badge, STATE_LOOKS } from "../../ui/badge.tsx";
import { Button, LinkButton } from "../../ui/button.tsx";
import { Callout } from "../../ui/callout.tsx";
import { Card, Crumb, Facts, PageHead } from "../../ui/card.tsx";
import { countText, durationText, percentText, plural, rateText, shortId } from "../../ui/format.ts";
import { fromFirstJob } from "../../ui/history.ts";
import { Meter } from "../../ui/meter.tsx";
import { Plot } from "../../ui/plot.tsx";
import { Shown } from "../../ui/shown.tsx";
import { NameLink } from "../../ui/table.tsx";
import { Time } from "../../ui/time.tsx";
import { useForm } from "../../ui/use-form.ts";
import { QUEUE_FORMS, type QueueFormName } from "../queues/queue-forms.tsx";
import { linesOf } from "../queues/queue-lines.ts";
import { laterOf, laterWords, rulesOf, workersOf } from "../queues/queue-words.ts";
import { WorkerBadge } from "../workers/worker-look.tsx";
import { FairShares } from "./fair-shares.tsx";

const HOUR = 3_600_000;

export function Page({ params }: { readonly params: Readonly<Record<string, string>> }) {
  const name = params.name ?? "";
  const queue = useResource(`queue ${name}`, (signal) => readQueue(name, signal), { live: 3_000 });
  return (
    <Shown of={queue} what={`Queue ${name}`}>
      {(data) => <Details queue={data} onChange={queue.reload} />}
    </Shown>
  );
}

function Details({ queue, onChange }: { readonly queue: Queue; readonly onChange: () => void }) {
  const { name } = queue;
  const { form, open, end } = useForm<QueueFormName>(onChange);
  const history = useResource(
    `queue history ${name}`,
    (signal) => readQueueHistory(name, serverNow() - HOUR, "1m", signal),
    { live: 15_000 },
  );
  const workers = useResource("queue workers", readWorkers, { live: 3_000 });
  const priorities = useResource(`queue priorities ${name}`, (signal) => readPriorities(name, signal), {
    live: 15_000,
  });
  const audit = useResource(`queue audit ${name} ${queue.paused}`, (signal) =>
    readAudit({ queue: name }, null, 8, signal),
  );
  const Form = form && QUEUE_FORMS[form];
  return (
    <>
      <Head queue={queue} onForm={open} />
      {queue.paused && (
        <Callout tone="soft">
          <p>
            Paused <Time at={queue.paused_at} />. <b>Deadlines run on while it is paused.</b>
          </p>
        </Callout>
      )}
      <States queue={queue} />
      <Plots queue={queue} points={history.data?.data ?? []} />
      <div class="pair">
        <Workers queue={name} workers={workers.data?.items} />
        <Rules queue={queue} priorities={priorities.data} />
      </div>
      <FairShares queue={queue} onChange={onChange} />
      <Lately entries={audit.data?.items} queue={name} />
      {Form && <Form queue={queue} {...end} />}
    </>
  );
}

function Head({ queue, onForm }: { readonly queue: Queue; readonly onForm: (form: QueueFormName) => void }) {
  const why = whyNot("operate");
  return (
    <PageHead
      title={queue.name}
      tab={`Queue ${queue.name}`}
      above={<Crumb href={href("queues")}>Queues</Crumb>}
      below={`${plural(queue.counts.available, "job waits", "jobs wait")}, ${laterOf(queue) === 0 ? "" : `${laterWords(queue)}, `}${countText(queue.counts.active)} run, ${rateText(queue.throughput.processed_per_minute / 60)} end a second.`}
    >
      {queue.paused ? (
        <Button kind="primary" icon="play" whyNot={why} onClick={() => onForm("resume")}>
          Resume…
        </Button>
      ) : (
        <Button icon="pause" whyNot={why} onClick={() => onForm("pause")}>
          Pause…
        </Button>
      )}
      <Button whyNot={why} onClick={() => onForm("rules")}>
        Rules…
      </Button>
      <Button kind="danger" whyNot={why} onClick={() => onForm("purge")}>
        Delete jobs…
      </Button>
      <Button
        whyNot={why ?? (queue.counts.discarded === 0 ? "None was discarded." : undefined)}
        onClick={() => onForm("retry")}
      >
        Retry discarded…
      </Button>
      <LinkButton href={href("jobs", { queue: queue.name })} icon="jobs">
        Jobs
      </LinkButton>
    </PageHead>
  );
}

const SHOWN = JOB_STATES.filter((state) => state !== "pending");

function States({ queue }: { readonly queue: Queue }) {
  return (
    <ul class="states" aria-label="Jobs by state">
      {SHOWN.map((state) => (
        <li key={state}>
          <a href={href("jobs", { queue: queue.name, state })}>
            <Badge look={STATE_LOOKS[state]} />
            <b>{countText(queue.counts[state])}</b>
            <small>
              {state === "completed" || state === "discarded" || state === "cancelled" ? "in 24 h" : "now"}
            </small>
          </a>
        </li>
      ))}
    </ul>
  );
}

const lastSpan = (values: readonly (number | null)[]): string => {
  const last = values.findLast((value) => value !== null);
  return last === undefined || last === null ? "–" : durationText(last);
};

function Plots({ queue, points: all }: { readonly queue: Queue; readonly points: readonly HistoryPoint[] }) {
  const points = fromFirstJob(all);
  const times = points.map(({ timestamp }) => Date.parse(timestamp));
  const { jobs, waits, oldest } = linesOf(queue, points);
  // The minute that is still being counted would look like a drop.
  const whole = points.slice(0, -1);
  const perSecond = whole.map(({ processed, span_ms }) => (processed * 1_000) / Math.max(1, span_ms));
  return (
    <section class="plots" aria-labelledby="plots">
      <h2 class="sr" id="plots">
        The last hour
      </h2>
      <Plot
        title="Jobs that wait or run"
        value={countText(queue.depth + queue.counts.active)}
        unit="about, over the last hour"
        times={times}
        lines={[{ name: "jobs", values: jobs, latest: countText(jobs.at(-1) ?? 0) }]}
        format={countText}
        of="counts"
        empty="No job waited or ran at the end of a minute."
      />
      <Plot
        title="Wait before the start"
        times={times}
        lines={[
          { name: "oldest", values: oldest, latest: lastSpan(oldest) },
          { name: "p99", values: waits, latest: lastSpan(waits) },
        ]}
        format={durationText}
        of="durations"
        empty="No job waited in the last hour."
      />
      <Plot
        title="Attempts that ended"
        value={rateText(queue.throughput.processed_per_minute / 60)}
        unit="a second"
        times={times.slice(0, -1)}
        lines={[{ name: "ended", values: perSecond, latest: rateText(perSecond.at(-1) ?? 0) }]}
        format={rateText}
        empty="No attempt ended in the last hour."
      />
    </section>
  );
}

function Workers({
  queue,
  workers,
}: {
  readonly queue: string;
  readonly workers: readonly Worker[] | undefined;
}) {
  const own = workersOf(queue, workers ?? []);
  return (
    <Card title="Who works on it" note={String(own.length)}>
      {own.length === 0 ? (
        <p class="pad t2">
          Nobody. Start a worker that names it:{" "}
          <code>{`engine.work({ queues: { ${JSON.stringify(queue)}: {} }, … })`}</code>
        </p>
      ) : (
        <ul class="lines">
          {own.slice(0, 20).map((worker) => (
            <li key={worker.id}>
              <NameLink href={href("workers", { worker: worker.id })} title={worker.id}>
                {shortId(worker.id)}
              </NameLink>
              <WorkerBadge worker={worker} />
              <span class="t3 push nowrap">
                {plural(worker.active_jobs, "job")}, beat <Time at={worker.last_heartbeat_at} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function Rules({
  queue,
  priorities,
}: {
  readonly queue: Queue;
  readonly priorities: PriorityStats | undefined;
}) {
  const configuration = queue.configuration as QueueConfiguration;
  const { backpressure, retention, retry } = configuration;
  const levels = priorities?.distribution ?? [];
  const most = Math.max(1, ...levels.map(({ count }) => count));
  return (
    <Card title="Rules and priorities">
      <div class="pad stack-gap">
        <Facts
          of={[
            ["Rules", rulesOf(configuration).join(", ") || "None of its own: jobs bring theirs."],
            [
              "Bound",
              backpressure &&
                `${percentText(backpressure.current_depth / backpressure.max_depth)} of ${countText(backpressure.max_depth)}; then ${backpressure.strategy === "reject" ? "new jobs are refused" : "the oldest is discarded"}`,
            ],
            [
              "Retries",
              retry &&
                Object.entries(retry)
                  .map(([key, value]) => `${key} ${JSON.stringify(value)}`)
                  .join(", "),
            ],
            [
              "Kept",
              retention &&
                Object.entries(retention)
                  .map(([state, time]) => `${state} ${time}`)
                  .join(", "),
            ],
            [
              "Run time",
              queue.latency_ms &&
                `p50 ${durationText(queue.latency_ms.p50)}, p95 ${durationText(queue.latency_ms.p95)}, p99 ${durationText(queue.latency_ms.p99)} over 5 minutes`,
            ],
          ]}
        />
        {levels.length > 0 && (
          <table class="plain" aria-label="Waiting jobs by priority">
            <tbody>
              {levels.slice(0, 10).map(({ priority, count }) => (
                <tr key={priority}>
                  <th scope="row">priority {priority}</th>
                  <td>
                    <Meter share={count / most} label={plural(count, "job")} />
                  </td>
                  <td class="num">{countText(count)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {priorities && !priorities.is_complete && <p class="t3 small">Of the first 10,000 jobs that wait.</p>}
      </div>
    </Card>
  );
}

function Lately({
  entries,
  queue,
}: {
  readonly entries: readonly AuditEntry[] | undefined;
  readonly queue: string;
}) {
  if (!entries || entries.length === 0) return null;
  return (
    <Card title="What people did to it" aside={<a href={href("audit", { queue })}>All of it</a>}>
      <ul class="lines">
        {entries.map((entry) => (
          <li key={entry.id}>
            <span class="t3 nowrap">
              <Time at={entry.at} />
            </span>
            <b>{entry.actor}</b>
            <code>{entry.action}</code>
            {entry.reason && <span class="clip t2">{entry.reason}</span>}
          </li>
        ))}
      </ul>
    </Card>
  );
}
