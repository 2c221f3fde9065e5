import type { Job, WireEvent, Worker, Workers } from "../../../ojs/replies/wire-replies.ts";
import { findJobs } from "../../api/jobs.ts";
import { type Directive, directWorker, forgetWorker, readEvents, readWorkers } from "../../api/operations.ts";
import { areRead, useResource } from "../../api/resource.ts";
import { now } from "../../state/clock.ts";
import { href, query } from "../../state/router.ts";
import { whyNot } from "../../state/session.ts";
import { ActionForm } from "../../ui/action-form.tsx";
import { Button } from "../../ui/button.tsx";
import { Empty } from "../../ui/callout.tsx";
import { Card, PageHead, Summed } from "../../ui/card.tsx";
import { FilterBar } from "../../ui/filter-bar.tsx";
import { durationText, plural, shortId } from "../../ui/format.ts";
import { Commands, Shown } from "../../ui/shown.tsx";
import { ACTIONS_COLUMN, type Column, NameLink, Table } from "../../ui/table.tsx";
import { Time } from "../../ui/time.tsx";
import { type FormEnd, useForm } from "../../ui/use-form.ts";
import { factsOf, type Holding, holdingOf } from "./worker-facts.ts";
import { WorkerBadge } from "./worker-look.tsx";

const EVENTS = "job.started,job.killed,job.stuck,job.unstuck,worker.*,sandbox.*";
const LIFE = /^(?:worker\.|sandbox\.|job\.(?:killed|stuck))/;

/** Who works, on what, and how well. */
export function Page() {
  const workers = useResource("workers", readWorkers, { live: 3_000 });
  const active = useResource(
    "workers active",
    (signal) => findJobs({ state: "active", per_page: 200 }, signal),
    { live: 3_000 },
  );
  const events = useResource("workers events", (signal) => readEvents(EVENTS, 1_000, signal), {
    live: 6_000,
  });
  const list = workers.data?.items ?? [];
  const holding = holdingOf(active.data?.items ?? [], list, events.data?.events ?? []);
  const isReady = areRead(workers, active, events);
  const queues = [...new Set(list.flatMap((worker) => worker.queues))].sort();
  return (
    <>
      <PageHead title="Workers" below={<Summed>{workers.data && summaryOf(workers.data)}</Summed>} />
      <FilterBar
        filters={[
          { name: "queue", label: "queue", options: queues.map((name) => [name, name]), isFree: true },
          { name: "worker", label: "worker", isFree: true },
        ]}
      />
      {isReady && <Orphans holding={holding} workers={list} />}
      <Shown of={isReady ? workers : { ...workers, data: undefined }} what="The list">
        {({ items }) => (
          <List
            workers={fitting(items)}
            all={items.length}
            holding={holding}
            events={events.data?.events ?? []}
            onChange={workers.reload}
          />
        )}
      </Shown>
      {isReady && <Happened events={events.data?.events ?? []} />}
    </>
  );
}

function summaryOf({ summary, items }: Workers): string {
  const { total, running, stale } = summary;
  const jobs = items.reduce((sum, { active_jobs }) => sum + active_jobs, 0);
  const silent = stale > 0 ? ` ${plural(stale, "is", "are")} silent.` : "";
  const takers =
    running === total
      ? plural(total, "worker takes jobs", "workers take jobs")
      : `${running} of ${plural(total, "worker")} ${running === 1 ? "takes" : "take"} jobs`;
  return `${takers}, ${plural(jobs, "job runs", "jobs run")}.${silent}`;
}

function fitting(workers: readonly Worker[]): Worker[] {
  const queue = query.value.get("queue");
  const id = query.value.get("worker");
  return workers.filter(
    (worker) =>
      (queue === null || worker.queues.length === 0 || worker.queues.includes(queue)) &&
      (id === null || worker.id.includes(id)),
  );
}

type FormName = Directive | "forget";

interface ListProps {
  readonly workers: readonly Worker[];
  readonly all: number;
  readonly holding: Holding;
  readonly events: readonly WireEvent[];
  readonly onChange: () => void;
}

function List({ workers, all, holding, events, onChange }: ListProps) {
  const { form, open, end } = useForm<{ readonly worker: Worker; readonly name: FormName }>(onChange);
  if (workers.length === 0)
    return (
      <div class="tablewrap">
        {all > 0 ? (
          <Empty icon="workers" title="No worker fits these filters" />
        ) : (
          <Empty icon="workers" title="No worker has reported lately">
            <p>Start one in a process of yours; it is here with its first beat.</p>
            <Commands
              lines={["engine.work({ queues: { default: { concurrency: 10 } }, processors: [ … ] });"]}
            />
          </Empty>
        )}
      </div>
    );
  return (
    <>
      <Table
        label="Workers"
        rows={workers}
        columns={columnsOf(holding, events, (worker, name) => open({ worker, name }))}
        idOf={({ id }) => id}
      />
      {form && <WorkerForm {...form} {...end} />}
    </>
  );
}

function columnsOf(
  holding: Holding,
  events: readonly WireEvent[],
  onForm: (worker: Worker, name: FormName) => void,
): Column<Worker>[] {
  return [
    {
      id: "id",
      title: "Worker",
      phone: "title",
      class: "c-worker",
      render: ({ id, remote }) => (
        <span class="two">
          <NameLink href={href("workers", { worker: id })} title={id}>
            {shortId(id)}
          </NameLink>
          <small>{remote ? "over HTTP" : "beside the store"}</small>
        </span>
      ),
    },
    { id: "state", title: "State", phone: "side", render: (worker) => <WorkerBadge worker={worker} /> },
    {
      id: "queues",
      title: "Queues",
      class: "c-tags",
      render: ({ queues }) => <QueueTags queues={queues} />,
    },
    {
      id: "runs",
      title: "Runs",
      class: "c-runs",
      render: (worker) => <Runs count={worker.active_jobs} jobs={holding.jobs.get(worker.id) ?? []} />,
    },
    { id: "loop", title: "Event loop", hide: "narrow", render: ({ id }) => <Loop id={id} events={events} /> },
    {
      id: "kills",
      title: "Kills",
      hide: "narrow",
      class: "nowrap",
      render: ({ id }) => <Kills id={id} events={events} />,
    },
    {
      id: "beat",
      title: "Last beat",
      isNumber: true,
      class: "nowrap t2",
      render: ({ last_heartbeat_at }) => <Time at={last_heartbeat_at} />,
    },
    {
      ...ACTIONS_COLUMN,
      render: (worker) => <Actions worker={worker} onForm={(name) => onForm(worker, name)} />,
    },
  ];
}

function QueueTags({ queues }: { readonly queues: readonly string[] }) {
  if (queues.length === 0) return <span class="t3">all</span>;
  return (
    <span class="tags">
      {queues.slice(0, MOST_TAGS).map((name) => (
        <a key={name} class="tag" href={href(`queues/${encodeURIComponent(name)}`)}>
          {name}
        </a>
      ))}
      {queues.length > MOST_TAGS && (
        <span class="tag" title={queues.join(", ")}>{`${queues.length - MOST_TAGS} more`}</span>
      )}
    </span>
  );
}

const MOST_SHOWN = 3;
const MOST_TAGS = 4;

/** Moves with the clock, so that the row around it need not. */
function Lasting({ job: { started_at } }: { readonly job: Job }) {
  return started_at === undefined ? "–" : durationText(Math.max(0, now.value - Date.parse(started_at)));
}

function Runs({ count, jobs }: { readonly count: number; readonly jobs: readonly Job[] }) {
  if (count === 0 && jobs.length === 0) return <span class="t3">nothing</span>;
  return (
    <span class="two">
      {jobs.slice(0, MOST_SHOWN).map((job) => (
        <span class="rowf min0" key={job.id}>
          <a class="clip" href={href(`jobs/${job.id}`)} title={job.id}>
            {job.type}
          </a>
          <small class="nowrap">
            <Lasting job={job} />
          </small>
        </span>
      ))}
      {Math.max(count, jobs.length) > Math.min(jobs.length, MOST_SHOWN) && (
        <small>
          {jobs.length === 0
            ? plural(count, "job")
            : `${Math.max(count, jobs.length) - Math.min(jobs.length, MOST_SHOWN)} more`}
        </small>
      )}
    </span>
  );
}

function Loop({ id, events }: { readonly id: string; readonly events: readonly WireEvent[] }) {
  const { blocks, longest } = factsOf(id, events);
  if (blocks === 0) return <span class="t3">steady</span>;
  return (
    <span class="is-soft tone">
      {durationText(longest)} at most, {plural(blocks, "time")}
    </span>
  );
}

function Kills({ id, events }: { readonly id: string; readonly events: readonly WireEvent[] }) {
  const { kills, stuck } = factsOf(id, events);
  if (kills + stuck === 0) return <span class="t3">none</span>;
  return (
    <span class={stuck > 0 ? "is-force tone" : undefined}>
      {[kills > 0 && plural(kills, "killed", "killed"), stuck > 0 && plural(stuck, "stuck", "stuck")]
        .filter(Boolean)
        .join(", ")}
    </span>
  );
}

const IN_PROCESS = "It lives in a process that has the store open. Stop that process: it drains by itself.";

function Actions({ worker, onForm }: { readonly worker: Worker; readonly onForm: (name: FormName) => void }) {
  const why = whyNot("operate") ?? (worker.remote ? undefined : IN_PROCESS);
  const isAsked = worker.state === "quiet" || worker.state === "terminate";
  if (worker.state === "stale")
    return (
      <Button small whyNot={why} onClick={() => onForm("forget")}>
        Forget…
      </Button>
    );
  return (
    <span class="rowf end">
      {isAsked ? (
        <Button small whyNot={why} onClick={() => onForm("resume")}>
          Resume…
        </Button>
      ) : (
        <Button small whyNot={why} onClick={() => onForm("quiet")}>
          Quiet…
        </Button>
      )}
      <Button
        small
        kind="danger"
        whyNot={why ?? (worker.state === "terminate" ? "It was asked to stop." : undefined)}
        onClick={() => onForm("terminate")}
      >
        Stop…
      </Button>
    </span>
  );
}

const WORDS: Readonly<
  Record<FormName, { readonly verb: string; readonly says: string; readonly said: string }>
> = {
  quiet: {
    verb: "Quiet",
    says: "It takes no more jobs and finishes those it has. It learns of it with its next beat.",
    said: "takes no more jobs",
  },
  terminate: {
    verb: "Stop",
    says: "It takes no more jobs, ends those it has within its drain time, and exits. It learns of it with its next beat.",
    said: "stops with its next beat",
  },
  resume: { verb: "Resume", says: "It takes jobs again from its next beat on.", said: "takes jobs again" },
  forget: {
    verb: "Forget",
    says: "Its name leaves this list. Its jobs are taken over when their own heartbeat limit ends; nothing about them changes. If it beats after all, it is back.",
    said: "is forgotten",
  },
};

interface WorkerFormProps extends FormEnd {
  readonly worker: Worker;
  readonly name: FormName;
}

function WorkerForm({ worker: { id, active_jobs }, name, ...end }: WorkerFormProps) {
  const { verb, says, said } = WORDS[name];
  return (
    <ActionForm
      title={`${verb} ${id}`}
      action={`${verb} the worker`}
      isDanger={name === "terminate" || name === "forget"}
      act={(reason) => (name === "forget" ? forgetWorker(id, reason) : directWorker(id, name, reason))}
      said={`Worker ${id} ${said}.`}
      does={`${says} It runs ${plural(active_jobs, "job")} now.`}
      {...end}
    />
  );
}

/** Jobs that are held by a worker nobody hears of: they come back when their own limit ends. */
function Orphans({ holding, workers }: { readonly holding: Holding; readonly workers: readonly Worker[] }) {
  const { orphans } = holding;
  if (orphans.length === 0) return null;
  return (
    <div class="gap">
      <Card
        title="Held by workers that are silent"
        note={`${plural(orphans.length, "job")}. Others take each over when its heartbeat limit ends.`}
      >
        <ul class="lines">
          {orphans.slice(0, 50).map(({ job, worker }) => {
            const seen = workers.find(({ id }) => id === worker)?.last_heartbeat_at;
            return (
              <li key={job.id}>
                <a class="name clip" href={href(`jobs/${job.id}`)}>
                  {job.type}
                </a>
                <span class="id">{shortId(job.id)}</span>
                <span class="t2 clip">
                  {seen
                    ? `${worker}, silent for ${durationText(now.value - Date.parse(seen))}`
                    : `${worker}, not known any more`}
                </span>
                <span class="t3 push nowrap">
                  {job.heartbeat_timeout_ms === undefined
                    ? "no heartbeat limit: only its deadline or a cancel ends it"
                    : `heartbeat limit ${durationText(job.heartbeat_timeout_ms)}`}
                </span>
              </li>
            );
          })}
        </ul>
      </Card>
    </div>
  );
}

const SAYS: Readonly<Record<string, string>> = {
  "worker.started": "started",
  "worker.quiet": "takes no more jobs",
  "worker.resumed": "takes jobs again",
  "worker.stopped": "stopped",
  "worker.lost": "stopped reporting",
  "worker.blocked": "stood still",
  "worker.unready": "cannot work",
  "worker.ready": "can work again",
  "job.killed": "a run was killed",
  "job.stuck": "a handler ran past its verdict",
};

function Happened({ events }: { readonly events: readonly WireEvent[] }) {
  const life = events
    .filter(({ type }) => LIFE.test(type))
    .slice(-30)
    .reverse();
  return (
    <div class="below">
      <Card title="What happened to workers" aside={<a href={href("events", { types: "worker.*" })}>Live</a>}>
        {life.length === 0 ? (
          <p class="pad t2">
            Nothing lately. Starts, stops, loops that stood still and kills are listed here.
          </p>
        ) : (
          <ul class="lines">
            {life.map((event) => (
              <li key={event.id}>
                <span class="t3 nowrap when">
                  <Time at={event.time} as="when" />
                </span>
                {event.type.startsWith("job.") ? (
                  <a class="clip" href={href(`jobs/${event.subject}`)}>
                    {String(event.data.job_type ?? event.subject)}
                  </a>
                ) : (
                  <b class="clip" title={event.subject}>
                    {shortId(event.subject ?? "")}
                  </b>
                )}
                <span class={/lost|blocked|stuck|killed|unready/.test(event.type) ? "is-soft tone" : "t2"}>
                  {SAYS[event.type] ?? event.type}
                  {event.type === "worker.blocked" && ` for ${durationText(Number(event.data.gap_ms) || 0)}`}
                </span>
                {typeof event.data.reason === "string" && <span class="t3 clip">{event.data.reason}</span>}
              </li>
            ))}
          </ul>
        )}
      </Card>
    </div>
  );
}
