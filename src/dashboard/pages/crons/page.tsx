import type { Cron } from "../../../ojs/replies/cron-replies.ts";
import type { Page as PageOf } from "../../../ojs/replies/wire-replies.ts";
import { readCrons } from "../../api/operations.ts";
import { useResource } from "../../api/resource.ts";
import { href, hrefWith, query } from "../../state/router.ts";
import { whyNot } from "../../state/session.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Empty } from "../../ui/callout.tsx";
import { PageHead } from "../../ui/card.tsx";
import { PagedTable } from "../../ui/paged-table.tsx";
import { Commands, Shown } from "../../ui/shown.tsx";
import { ACTIONS_COLUMN, type Column, NAME_COLUMN, NameLink } from "../../ui/table.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { Time } from "../../ui/time.tsx";
import { useForm } from "../../ui/use-form.ts";
import { CRON_FORMS, type CronFormName } from "./cron-forms.tsx";
import { cronWords, workingDayWords } from "./cron-words.ts";
import { inZone } from "./instants.ts";

const LOOKS = {
  on: { mark: "open", tone: "done", word: "On" },
  off: { mark: "paused", tone: "soft", word: "Paused" },
  over: { mark: "cancelled", tone: "off", word: "Over" },
} as const;

export const cronLook = ({ enabled, next_run_at }: Cron) =>
  LOOKS[!enabled ? "off" : next_run_at === null ? "over" : "on"];

/** Jobs that are enqueued again and again, in plain words. */
export function Page() {
  const enabled = query.value.get("enabled");
  const cursor = query.value.get("cursor");
  const crons = useResource(`crons ${enabled} ${cursor}`, (signal) => readCrons(cursor, enabled, signal), {
    live: 6_000,
  });
  const to = (value: string | null) => hrefWith({ enabled: value, cursor: null });
  return (
    <>
      <PageHead title="Crons" below="Each enqueues a job again and again, by the clocks of its own zone." />
      <Tabs
        label="Which crons"
        current={enabled ?? "all"}
        tabs={[
          { id: "all", title: "All", href: to(null) },
          { id: "true", title: "On", href: to("true") },
          { id: "false", title: "Paused", href: to("false") },
        ]}
      />
      <Shown of={crons} what="The list">
        {(data) => <List page={data} isFiltered={enabled !== null} onChange={crons.reload} />}
      </Shown>
    </>
  );
}

interface ListProps {
  readonly page: PageOf<Cron>;
  readonly isFiltered: boolean;
  readonly onChange: () => void;
}

function List({ page, isFiltered, onChange }: ListProps) {
  const { form, open, end } = useForm<{ readonly cron: Cron; readonly name: CronFormName }>(onChange);
  const Form = form && CRON_FORMS[form.name];
  return (
    <>
      <PagedTable
        label="Crons"
        page={page}
        isCounted
        columns={columnsOf((cron, name) => open({ cron, name }))}
        idOf={({ name }) => name}
        hrefOf={({ name }) => href(`crons/${encodeURIComponent(name)}`)}
        empty={
          <Empty icon="crons" title={isFiltered ? "No cron is in this state" : "No crons yet"}>
            {!isFiltered && (
              <>
                <p>Put one from your code. Every process may do it at its start: the last word counts.</p>
                <Commands
                  lines={[
                    'await engine.crons.put("close-books", { cron: "0 3 * * 1-5", zone: "Europe/Berlin", job });',
                  ]}
                />
              </>
            )}
          </Empty>
        }
      />
      {Form && <Form cron={form.cron} {...end} />}
    </>
  );
}

function columnsOf(onForm: (cron: Cron, name: CronFormName) => void): Column<Cron>[] {
  return [
    {
      id: "name",
      title: "Cron",
      ...NAME_COLUMN,
      render: ({ name, type, options }) => (
        <span class="two">
          <NameLink href={href(`crons/${encodeURIComponent(name)}`)}>{name}</NameLink>
          <small class="clip">
            {type} into {options.queue}
          </small>
        </span>
      ),
    },
    { id: "state", title: "State", phone: "side", render: (cron) => <Badge look={cronLook(cron)} /> },
    {
      id: "schedule",
      title: "When",
      phone: "line",
      class: "c-wide",
      render: (cron) => (
        <span class="two">
          <span class="first-up">
            {cronWords(cron.expression)}
            {workingDayWords(cron)}
          </span>
          <small>
            <code>{cron.expression}</code> in {cron.timezone}
          </small>
        </span>
      ),
    },
    ...timeColumns(onForm),
  ];
}

/** When it fires, and what can be done about it. */
function timeColumns(onForm: (cron: Cron, name: CronFormName) => void): Column<Cron>[] {
  return [
    {
      id: "next",
      title: "Next",
      class: "nowrap",
      render: ({ next_run_at, timezone, enabled }) =>
        next_run_at === null ? (
          <span class="t3">{enabled ? "never again" : "when it is resumed"}</span>
        ) : (
          <span class="two">
            <Time at={next_run_at} />
            <small class="hide-s">{inZone(timezone, Date.parse(next_run_at))} there</small>
          </span>
        ),
    },
    {
      id: "last",
      title: "Last",
      class: "t2 nowrap",
      render: ({ last_run_at, last_job_id }) =>
        last_run_at === null ? (
          <span class="t3">not yet</span>
        ) : last_job_id === null ? (
          <Time at={last_run_at} />
        ) : (
          <a href={href(`jobs/${last_job_id}`)}>
            <Time at={last_run_at} />
          </a>
        ),
    },
    {
      ...ACTIONS_COLUMN,
      render: (cron) => (
        <span class="rowf end">
          <Button small icon="play" whyNot={whyNot("operate")} onClick={() => onForm(cron, "run")}>
            Run now…
          </Button>
          <Button
            small
            whyNot={whyNot("operate")}
            onClick={() => onForm(cron, cron.enabled ? "pause" : "resume")}
          >
            {cron.enabled ? "Pause…" : "Resume…"}
          </Button>
        </span>
      ),
    },
  ];
}
