import { useState } from "preact/hooks";
import type { HistoryPoint } from "../../../ojs/replies/history-replies.ts";
import type {
  AuditEntry,
  Job,
  Queue,
  QueueConfiguration,
  Worker,
} from "../../../ojs/replies/wire-replies.ts";
import {
  readAudit,
  readOldestWaiting,
  readQueueHistory,
  readQueues,
  readWorkers,
} from "../../api/operations.ts";
import { areRead, useLast, useOnce, useResource } from "../../api/resource.ts";
import { now, serverNow } from "../../state/clock.ts";
import { href } from "../../state/router.ts";
import { whyNot } from "../../state/session.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Callout, Empty } from "../../ui/callout.tsx";
import { PageHead, Summed } from "../../ui/card.tsx";
import { countText, durationText, percentText, plural, rateText } from "../../ui/format.ts";
import { Menu } from "../../ui/menu.tsx";
import { Meter } from "../../ui/meter.tsx";
import { Commands, Shown } from "../../ui/shown.tsx";
import { Sparkline } from "../../ui/sparkline.tsx";
import { ACTIONS_COLUMN, type Column, NAME_COLUMN, NameLink, Table } from "../../ui/table.tsx";
import { Time } from "../../ui/time.tsx";
import { useForm } from "../../ui/use-form.ts";
import { QUEUE_FORMS, type QueueFormName } from "./queue-forms.tsx";
import { linesOf, quietStart } from "./queue-lines.ts";
import { laterOf, laterWords, type Need, needOf, rulesOf, sortedQueues, takersOf } from "./queue-words.ts";

const HOUR = 3_600_000;
/** Plots are read for this many queues; a server with more shows their numbers alone. */
const MOST_PLOTTED = 40;

/** What is read beside the list itself, by the name of the queue. */
interface Beside {
  readonly histories: ReadonlyMap<string, readonly HistoryPoint[]>;
  readonly oldest: ReadonlyMap<string, Job>;
  readonly pauses: ReadonlyMap<string, AuditEntry>;
  readonly workers: readonly Worker[];
  readonly isReady: boolean;
}

async function byName<Value>(
  names: readonly string[],
  read: (name: string) => Promise<Value | undefined>,
): Promise<{ readonly ok: true; readonly data: ReadonlyMap<string, Value> }> {
  const found = new Map<string, Value>();
  await Promise.all(
    names.map(async (name) => {
      const value = await read(name);
      if (value !== undefined) found.set(name, value);
    }),
  );
  return { ok: true, data: found };
}

function useBeside(queues: readonly Queue[] | undefined): Beside {
  const some = queues?.slice(0, MOST_PLOTTED) ?? [];
  const names = some.map(({ name }) => name);
  const waiting = some.filter(({ counts }) => counts.available > 0).map(({ name }) => name);
  const paused = some.filter((queue) => queue.paused).map(({ name }) => name);
  const keyOf = (what: string, of: readonly string[]) => (queues ? `queues ${what} ${of.join("\n")}` : null);
  const histories = useResource(
    keyOf("history", names),
    (signal) =>
      byName(names, async (name) => {
        const result = await readQueueHistory(name, serverNow() - HOUR, "1m", signal);
        return result.ok ? result.data.data : undefined;
      }),
    { live: 30_000 },
  );
  const oldest = useResource(
    keyOf("oldest", waiting),
    (signal) =>
      byName(waiting, async (name) => {
        const result = await readOldestWaiting(name, signal);
        return result.ok ? result.data.items[0] : undefined;
      }),
    { live: 6_000 },
  );
  const pauses = useResource(keyOf("pauses", paused), (signal) =>
    byName(paused, async (queue) => {
      const result = await readAudit({ queue, action: "queue.pause" }, null, 1, signal);
      return result.ok ? result.data.items[0] : undefined;
    }),
  );
  const workers = useResource("queues workers", readWorkers, { live: 3_000 });
  const isReady = useOnce(queues !== undefined && areRead(histories, oldest, pauses, workers));
  // Which queues are asked about changes all the time; what was said of them holds until it is said anew.
  return {
    histories: useLast(histories.data) ?? new Map(),
    oldest: useLast(oldest.data) ?? new Map(),
    pauses: useLast(pauses.data) ?? new Map(),
    workers: workers.data?.items ?? [],
    isReady,
  };
}

export function Page() {
  const queues = useResource("queues", readQueues, { live: 3_000 });
  const beside = useBeside(queues.data?.items);
  return (
    <>
      <PageHead
        title="Queues"
        below={
          <Summed>
            {queues.data && queues.data.items.length > 0 && (
              <>
                {summaryOf(queues.data.items)} <span class="t3">Plots show the last hour.</span>
              </>
            )}
          </Summed>
        }
      />
      <Shown of={beside.isReady ? queues : { ...queues, data: undefined }} what="The list">
        {({ items }) => <List queues={items} beside={beside} onChange={queues.reload} />}
      </Shown>
    </>
  );
}

function summaryOf(queues: readonly Queue[]): string {
  const sum = (of: (queue: Queue) => number) => queues.reduce((total, queue) => total + of(queue), 0);
  const waiting = plural(
    sum(({ counts }) => counts.available),
    "job waits",
    "jobs wait",
  );
  const later = sum(laterOf);
  const due = later === 0 ? "" : `, ${countText(later)} later`;
  return `${plural(queues.length, "queue")}: ${waiting}${due}, ${countText(sum(({ counts }) => counts.active))} run.`;
}

interface ListProps {
  readonly queues: readonly Queue[];
  readonly beside: Beside;
  readonly onChange: () => void;
}

function List({ queues, beside, onChange }: ListProps) {
  const { form, open, end } = useForm<{ readonly name: string; readonly form: QueueFormName }>(onChange);
  if (queues.length === 0)
    return (
      <div class="tablewrap">
        <Empty icon="queues" title="No queue has jobs or rules yet">
          <p>Every name is a queue: it is here as soon as a job is enqueued into it.</p>
          <Commands lines={['await engine.enqueue(job, payload, { queue: "mail" });']} />
        </Empty>
      </div>
    );
  const rows = sortedQueues(queues, beside.workers);
  const opened = form && queues.find(({ name }) => name === form.name);
  const Form = form && QUEUE_FORMS[form.form];
  return (
    <>
      <Table
        label="Queues"
        class="queues"
        rows={rows}
        columns={columnsOf(beside, (name, what) => open({ name, form: what }))}
        idOf={({ name }) => name}
        hrefOf={({ name }) => href(`queues/${encodeURIComponent(name)}`)}
        below={(queue) =>
          needOf(queue, takersOf(queue.name, beside.workers).length) && <Note queue={queue} beside={beside} />
        }
      />
      {Form && opened && <Form queue={opened} {...end} />}
    </>
  );
}

const LOOKS: Readonly<Record<NonNullable<Need> | "open", Parameters<typeof Badge>[0]["look"]>> = {
  "no worker": { mark: "stuck", tone: "force", word: "No worker" },
  paused: { mark: "paused", tone: "soft", word: "Paused" },
  full: { mark: "discarded", tone: "force", word: "Full" },
  "nearly full": { mark: "grace", tone: "soft", word: "Nearly full" },
  open: { mark: "open", tone: "done", word: "Open" },
};

const toneOf = (need: Need) =>
  need === "no worker" || need === "full" ? "bad" : need === null ? undefined : "warn";

function columnsOf(beside: Beside, onForm: (name: string, form: QueueFormName) => void): Column<Queue>[] {
  const need = (queue: Queue) => needOf(queue, takersOf(queue.name, beside.workers).length);
  const skipped = quietStart([...beside.histories.values()]);
  const lines = (queue: Queue) => linesOf(queue, (beside.histories.get(queue.name) ?? []).slice(skipped));
  return [
    {
      id: "name",
      title: "Queue",
      ...NAME_COLUMN,
      render: ({ name }) => <NameLink href={href(`queues/${encodeURIComponent(name)}`)}>{name}</NameLink>,
    },
    {
      id: "state",
      title: "State",
      phone: "side",
      render: (queue) => <Badge look={LOOKS[need(queue) ?? "open"]} />,
    },
    {
      id: "waiting",
      title: "Waiting",
      render: (queue) => (
        <span class="figure">
          <Waiting queue={queue} />
          <Sparkline
            label={`About how many jobs ${queue.name} had in the last hour`}
            values={lines(queue).jobs}
            tone={toneOf(need(queue))}
          />
        </span>
      ),
    },
    {
      id: "oldest",
      title: "Oldest wait",
      render: (queue) => (
        <span class="figure">
          <Oldest job={beside.oldest.get(queue.name)} />
          <Sparkline
            label={`How long the oldest job of ${queue.name} had waited, in the last hour`}
            values={lines(queue).oldest}
            tone={toneOf(need(queue))}
          />
        </span>
      ),
    },
    ...workColumns(beside, onForm),
  ];
}

/** What runs, under which rules, and what can be done. */
function workColumns(
  { workers }: Beside,
  onForm: (name: string, form: QueueFormName) => void,
): Column<Queue>[] {
  return [
    { id: "running", title: "Running", isNumber: true, render: (queue) => <Running queue={queue} /> },
    {
      id: "rate",
      title: "Ended /s",
      isNumber: true,
      hide: "narrow",
      phone: "hide",
      render: ({ throughput }) => rateText(throughput.processed_per_minute / 60),
    },
    {
      id: "rules",
      title: "Rules",
      hide: "narrow",
      phone: "hide",
      class: "t2 small c-rules",
      render: ({ configuration }) =>
        rulesOf(configuration as QueueConfiguration).join(", ") || <span class="t3">–</span>,
    },
    {
      id: "workers",
      title: "Workers",
      isNumber: true,
      phone: "hide",
      render: ({ name }) => (
        <a href={href("workers", { queue: name })}>{takersOf(name, workers).length || "none"}</a>
      ),
    },
    {
      ...ACTIONS_COLUMN,
      render: (queue) => <Actions queue={queue} onForm={(form) => onForm(queue.name, form)} />,
    },
  ];
}

/** What could start now, and below it what will wait later. */
function Waiting({ queue }: { readonly queue: Queue }) {
  const { name, counts } = queue;
  const later = laterOf(queue);
  return (
    <span class="two">
      <a href={href("jobs", { queue: name, state: "available" })}>{countText(counts.available)}</a>
      {later > 0 && (
        <small class="nowrap" title={laterWords(queue)}>
          {countText(later)} later
        </small>
      )}
    </span>
  );
}

function Oldest({ job }: { readonly job: Job | undefined }) {
  if (!job) return <span class="t3 nothing">–</span>;
  return (
    <a class="nowrap" href={href(`jobs/${job.id}`)} title="The job that waits longest">
      {durationText(Math.max(0, now.value - Date.parse(job.created_at)))}
    </a>
  );
}

function Running({ queue }: { readonly queue: Queue }) {
  const { concurrency } = queue.configuration as QueueConfiguration;
  const { active } = queue.counts;
  const link = (
    <a href={href("jobs", { queue: queue.name, state: "active" })}>
      {concurrency === undefined ? countText(active) : `${active} of ${concurrency}`}
    </a>
  );
  if (concurrency === undefined) return link;
  return (
    <span class="stack-meter">
      {link}
      <Meter share={active / concurrency} label={`${active} of ${concurrency} run`} />
    </span>
  );
}

function Actions({
  queue,
  onForm,
}: {
  readonly queue: Queue;
  readonly onForm: (form: QueueFormName) => void;
}) {
  const [isOpen, setOpen] = useState(false);
  const why = whyNot("operate");
  return (
    <span class="rowf end">
      {queue.paused ? (
        <Button small kind="primary" icon="play" whyNot={why} onClick={() => onForm("resume")}>
          Resume
        </Button>
      ) : (
        <Button small icon="pause" whyNot={why} onClick={() => onForm("pause")}>
          Pause
        </Button>
      )}
      <Menu small label={`More for ${queue.name}`} isOpen={isOpen} onToggle={setOpen}>
        <a href={href("jobs", { queue: queue.name })}>Show its jobs</a>
        <a href={href("dead-letters", { queue: queue.name })}>Show its dead letters</a>
        <button type="button" disabled={why !== undefined} title={why} onClick={() => onForm("retry")}>
          Retry its discarded jobs…
        </button>
        <button type="button" disabled={why !== undefined} title={why} onClick={() => onForm("rules")}>
          Change its rules…
        </button>
        <button type="button" disabled={why !== undefined} title={why} onClick={() => onForm("purge")}>
          Delete jobs…
        </button>
      </Menu>
    </span>
  );
}

function Note({ queue, beside }: { readonly queue: Queue; readonly beside: Beside }) {
  const { name, counts, configuration } = queue;
  const { backpressure } = configuration as QueueConfiguration;
  const need = needOf(queue, takersOf(name, beside.workers).length);
  if (need === "no worker")
    return (
      <Callout tone="force">
        <div class="grow">
          <p>
            <b>No worker takes this queue.</b> {plural(counts.available, "job waits", "jobs wait")}
            <FirstExpiry job={beside.oldest.get(name)} />
          </p>
          <p>
            Start one that names it:{" "}
            <code>{`engine.work({ queues: { ${JSON.stringify(name)}: {} }, … })`}</code>
          </p>
        </div>
      </Callout>
    );
  if (need === "paused") return <PausedNote queue={queue} entry={beside.pauses.get(name)} />;
  if (!backpressure) return null;
  return (
    <Callout tone={need === "full" ? "force" : "soft"}>
      <p>
        <b>{percentText(backpressure.current_depth / backpressure.max_depth)} full.</b> At{" "}
        {countText(backpressure.max_depth)} waiting jobs{" "}
        {backpressure.strategy === "reject"
          ? "an enqueue is refused."
          : "the oldest is discarded for each new one."}
      </p>
    </Callout>
  );
}

/** When the job that waits longest will not be started any more. */
function FirstExpiry({ job }: { readonly job: Job | undefined }) {
  if (job?.enqueue_ttl_ms === undefined) return <>.</>;
  const at = Date.parse(job.created_at) + job.enqueue_ttl_ms;
  return (
    <>
      ; the oldest expires in <b>{durationText(Math.max(0, at - now.value))}</b>.
    </>
  );
}

function PausedNote({ queue, entry }: { readonly queue: Queue; readonly entry: AuditEntry | undefined }) {
  return (
    <Callout tone="soft">
      <p>
        Paused <Time at={queue.paused_at} />
        {entry && (
          <>
            {" "}
            by <b>{entry.actor}</b>
            {entry.reason && `: “${entry.reason}”`}
          </>
        )}
        . <b>Deadlines run on while it is paused.</b>
      </p>
    </Callout>
  );
}
