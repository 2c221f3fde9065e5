import type { Cron, CronRun } from "../../../ojs/replies/cron-replies.ts";
import { readCron, readCronRuns } from "../../api/operations.ts";
import { useResource } from "../../api/resource.ts";
import { serverNow } from "../../state/clock.ts";
import { go, href } from "../../state/router.ts";
import { whyNot } from "../../state/session.ts";
import { Badge, STATE_LOOKS, Tag } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Card, Crumb, Facts, PageHead } from "../../ui/card.tsx";
import { durationText, exactText, plural, shortId, whenText } from "../../ui/format.ts";
import { Mark } from "../../ui/icon.tsx";
import { JsonTree } from "../../ui/json-tree.tsx";
import { Shown } from "../../ui/shown.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { Time } from "../../ui/time.tsx";
import { useForm } from "../../ui/use-form.ts";
import { CRON_FORMS, type CronFormName } from "../crons/cron-forms.tsx";
import { cronWords, workingDayWords } from "../crons/cron-words.ts";
import { type CronInstant, inZone, nextInstants, offsetAt, offsetText } from "../crons/instants.ts";
import { cronLook } from "../crons/page.tsx";

const SHOWN = 5;

export function Page({ params }: { readonly params: Readonly<Record<string, string>> }) {
  const name = params.name ?? "";
  const cron = useResource(`cron ${name}`, (signal) => readCron(name, signal), { live: 3_000 });
  return (
    <Shown of={cron} what={`Cron ${name}`}>
      {(data) => <Details cron={data.cron} onChange={cron.reload} />}
    </Shown>
  );
}

function Details({ cron, onChange }: { readonly cron: Cron; readonly onChange: () => void }) {
  const { form, open, end } = useForm<CronFormName>(onChange);
  const runs = useResource(
    `cron runs ${cron.name} ${cron.last_job_id}`,
    (signal) => readCronRuns(cron.name, signal),
    { live: 3_000 },
  );
  const why = whyNot("operate");
  const Form = form && CRON_FORMS[form];
  return (
    <>
      <PageHead
        title={cron.name}
        tab={`Cron ${cron.name}`}
        above={<Crumb href={href("crons")}>Crons</Crumb>}
        beside={<Badge look={cronLook(cron)} pill />}
        below={
          <>
            <span class="first-up">{cronWords(cron.expression)}</span>
            {workingDayWords(cron)}, by the clocks of {cron.timezone}.
          </>
        }
      >
        <Button kind="primary" icon="play" whyNot={why} onClick={() => open("run")}>
          Run now…
        </Button>
        <Button whyNot={why} onClick={() => open(cron.enabled ? "pause" : "resume")}>
          {cron.enabled ? "Pause…" : "Resume…"}
        </Button>
        <Button whyNot={why} onClick={() => open("change")}>
          Change…
        </Button>
        <Button kind="danger" whyNot={why} onClick={() => open("delete")}>
          Delete…
        </Button>
      </PageHead>
      <div class="pair">
        <Upcoming cron={cron} />
        <About cron={cron} />
      </div>
      <Card title="History" note={runs.data && plural(runs.data.runs.length, "run")}>
        <Shown of={runs} what="Its history" rows={4}>
          {(data) => <History runs={data.runs} zone={cron.timezone} />}
        </Shown>
      </Card>
      {Form && <Form cron={cron} {...end} {...(form === "delete" && { onDone: () => go(href("crons")) })} />}
    </>
  );
}

/** The next instants. The server says the first; the others are counted here, and only if both agree on it. */
export function upcomingOf(
  cron: Cron,
  from: number,
): { readonly instants: CronInstant[]; readonly isKnown: boolean } {
  if (cron.next_run_at === null) return { instants: [], isKnown: true };
  const first = Date.parse(cron.next_run_at);
  // The browser does not know which days are closed.
  const isCounted = cron.calendar === undefined;
  const counted = nextInstants(cron.expression, cron.timezone, Math.min(from, first - 1), SHOWN + 1).filter(
    ({ at }) => at >= first,
  );
  if (isCounted && counted[0]?.at === first) return { instants: counted.slice(0, SHOWN), isKnown: true };
  return {
    instants: [{ at: first, offset: offsetAt(cron.timezone, first) ?? 0, change: null }],
    isKnown: false,
  };
}

/** Whether this browser's clock shows another time than the cron's zone does. */
const isElsewhere = ({ at, offset }: CronInstant): boolean =>
  offset !== -new Date(at).getTimezoneOffset() * 60_000;

function Upcoming({ cron }: { readonly cron: Cron }) {
  const { timezone } = cron;
  const from = serverNow();
  const { instants, isKnown } = upcomingOf(cron, from);
  let before = offsetAt(timezone, from) ?? 0;
  return (
    <Card title={`Next in ${timezone}`} note={cron.enabled ? undefined : "paused: none of these happens"}>
      {instants.length === 0 ? (
        <p class="pad t2">{cron.enabled ? "It never fires again." : "Nothing until it is resumed."}</p>
      ) : (
        <ol class="lines next">
          {instants.map((instant) => {
            const shift = instant.offset - before;
            before = instant.offset;
            return (
              <li key={instant.at}>
                <span class="two">
                  <b>{inZone(timezone, instant.at)}</b>
                  <small title={exactText(instant.at)}>
                    {offsetText(instant.offset)}
                    {isElsewhere(instant) && `, here ${whenText(instant.at, from)}`}
                  </small>
                </span>
                <Change instant={instant} shift={shift} />
                <span class="push nowrap t2">
                  <Time at={instant.at} />
                </span>
              </li>
            );
          })}
        </ol>
      )}
      {!isKnown && (
        <p class="pad t3 small">
          {cron.calendar === undefined
            ? "Only the server's next instant is shown: this browser counts others, because the cron has rules for clock changes of its own or a zone that is not known here."
            : `Only the server's next instant is shown: the calendar ${cron.calendar} says which days are closed. curfew cron next ${cron.name} lists more.`}
        </p>
      )}
    </Card>
  );
}

function Change({ instant, shift }: { readonly instant: CronInstant; readonly shift: number }) {
  if (shift === 0 && instant.change === null) return null;
  const words =
    instant.change === "skipped"
      ? "the clocks skip its time: moved later"
      : instant.change === "repeated"
        ? "its time comes twice: the first counts"
        : `clocks change before: ${shift > 0 ? "+" : "−"}${durationText(shift)}`;
  return (
    <span class="tag is-soft dst">
      <Mark name="grace" />
      {words}
    </span>
  );
}

const OVERLAPS = {
  allow: "another starts beside it",
  skip: "this one is left out",
  cancel_previous: "the last one is cancelled",
} as const;

function About({ cron }: { readonly cron: Cron }) {
  const { missed_policy: missed } = cron;
  return (
    <Card title="What it enqueues">
      <div class="pad stack-gap">
        <Facts
          of={[
            [
              "Job",
              <a key="job" href={href("jobs", { type: cron.type })}>
                {cron.type}
              </a>,
            ],
            [
              "Queue",
              <a key="queue" href={href(`queues/${encodeURIComponent(cron.options.queue)}`)}>
                {cron.options.queue}
              </a>,
            ],
            ["Expression", <code key="expression">{cron.expression}</code>],
            ["If the last one still runs", OVERLAPS[cron.overlap_policy] ?? cron.overlap_policy],
            [
              "If no server ran",
              missed === "skip"
                ? "missed instants are left out"
                : missed === "once"
                  ? "one run stands for all that were missed"
                  : "each missed instant is made up for",
            ],
            ["Changed", <Time key="changed" at={cron.updated_at} />],
          ]}
        />
        <JsonTree
          value={Array.isArray(cron.args) && cron.args.length === 1 ? cron.args[0] : cron.args}
          what="the payload"
        />
      </div>
    </Card>
  );
}

const SKIPS = {
  overlap: "left out: the last job had not ended",
  missed: "missed: no server ran",
  failed: "failed: the job could not be made; the log says why",
} as const;

function History({ runs, zone }: { readonly runs: readonly CronRun[]; readonly zone: string }) {
  if (runs.length === 0) return <p class="pad t2">It has not fired yet.</p>;
  const columns: Column<CronRun>[] = [
    {
      id: "for",
      title: "Was due",
      phone: "title",
      class: "nowrap",
      render: ({ scheduled_for }) => (
        <span title={exactText(Date.parse(scheduled_for))}>{inZone(zone, Date.parse(scheduled_for))}</span>
      ),
    },
    { id: "result", title: "What came of it", phone: "side", render: (run) => <Result run={run} /> },
    {
      id: "job",
      title: "Job",
      render: ({ job_id }) =>
        job_id === null ? (
          <span class="t3">–</span>
        ) : (
          <a class="id" href={href(`jobs/${job_id}`)}>
            {shortId(job_id)}
          </a>
        ),
    },
    {
      id: "ran",
      title: "Ran",
      isNumber: true,
      render: ({ started_at, completed_at }) =>
        started_at && completed_at ? durationText(Date.parse(completed_at) - Date.parse(started_at)) : "–",
    },
    { id: "at", title: "Enqueued", isNumber: true, class: "t2 nowrap", render: ({ at }) => <Time at={at} /> },
  ];
  return (
    <Table
      label="History"
      rows={runs}
      columns={columns}
      idOf={({ scheduled_for, at, job_id }) => `${scheduled_for} ${at} ${job_id}`}
    />
  );
}

function Result({ run }: { readonly run: CronRun }) {
  if (run.skipped)
    return (
      <span class="is-soft tone">
        {SKIPS[run.skipped]}
        {(run.count ?? 1) > 1 && ` (${run.count} instants)`}
      </span>
    );
  return (
    <span class="rowf">
      {run.state ? <Badge look={STATE_LOOKS[run.state]} /> : <span class="t3">not kept any more</span>}
      {run.manual && <Tag>by hand</Tag>}
      {run.cancelled_job_id && <Tag>cancelled the last</Tag>}
    </span>
  );
}
