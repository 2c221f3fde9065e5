import { useState } from "preact/hooks";
import type { Limit, Page as PageOf, Rate } from "../../../ojs/replies/wire-replies.ts";
import { liftOverride, overrideLimit, readLimits } from "../../api/operations.ts";
import { usePage } from "../../api/resource.ts";

import { whyNot } from "../../state/session.ts";
import { ActionForm } from "../../ui/action-form.tsx";
import { Tag } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Empty } from "../../ui/callout.tsx";
import { TextField } from "../../ui/fields.tsx";
import { countText, limitText, plural, readLimit } from "../../ui/format.ts";
import { ListPage } from "../../ui/list-page.tsx";
import { Meter } from "../../ui/meter.tsx";
import { PagedTable } from "../../ui/paged-table.tsx";
import { Commands } from "../../ui/shown.tsx";
import { ACTIONS_COLUMN, type Column, NAME_COLUMN } from "../../ui/table.tsx";
import { Time } from "../../ui/time.tsx";
import { type FormEnd, useForm } from "../../ui/use-form.ts";

type FormName = "override" | "lift";

/** How many jobs of a key run at once, and how many start in a stretch of time. */
export function Page() {
  const limits = usePage("limits", readLimits, 3_000);
  return (
    <ListPage
      title="Limits"
      below="Jobs with the same key share a limit, in whatever queue they are. Jobs over it wait, and do not hold up others."
      of={limits}
      action="Override a key…"
      form={(end) => <OverrideForm {...end} />}
    >
      {(page) => <List page={page} onChange={limits.reload} />}
    </ListPage>
  );
}

function List({ page, onChange }: { readonly page: PageOf<Limit>; readonly onChange: () => void }) {
  const { form, open, end } = useForm<{ readonly limit: Limit; readonly name: FormName }>(onChange);
  return (
    <>
      <PagedTable
        label="Limits"
        page={page}
        columns={columnsOf((limit, name) => open({ limit, name }))}
        idOf={({ key }) => key}
        empty={
          <Empty icon="limits" title="No key is limited now">
            <p>
              A limit is here while jobs of its key live, or somebody overrides it. A job brings it along:
            </p>
            <Commands
              lines={[
                'defineJob({ type: "crm.sync", limit: { key: "crm", concurrency: 2, rate: { limit: 50, per: "1m" } } });',
              ]}
            />
          </Empty>
        }
      />
      {form?.name === "override" && <OverrideForm limit={form.limit} {...end} />}
      {form?.name === "lift" && (
        <ActionForm
          title={`Remove the override of ${form.limit.key}`}
          action="Remove the override"
          act={(reason) => liftOverride(form.limit.key, reason)}
          said={`Key ${form.limit.key} is as its jobs say again.`}
          does="What the jobs of the key say holds again, for every process and at once."
          {...end}
        />
      )}
    </>
  );
}

/** `PT60S` as `1m`. */
export function periodText(period: string): string {
  const seconds = /^PT(\d+(?:\.\d+)?)S$/.exec(period)?.[1];
  return seconds === undefined ? period : limitText(Math.round(Number(seconds) * 1_000));
}

const rateWords = ({ limit, period }: Rate) => `${countText(limit)} per ${periodText(period)}`;

function columnsOf(onForm: (limit: Limit, name: FormName) => void): Column<Limit>[] {
  return [
    {
      id: "key",
      title: "Key",
      ...NAME_COLUMN,
      render: ({ key, override }) => (
        <span class="rowf min0">
          <span class="name clip mono" title={key}>
            {key}
          </span>
          {override && <Tag tone="soft">overridden</Tag>}
        </span>
      ),
    },
    {
      id: "running",
      title: "Run at once",
      render: ({ active, concurrency }) =>
        concurrency === null ? (
          <span>
            {active} <span class="t3">no bound</span>
          </span>
        ) : (
          <span class="stack-meter">
            <span>
              {active} of {concurrency}
            </span>
            <Meter
              share={active / concurrency}
              label={`${active} of ${concurrency} run`}
              tone={active >= concurrency ? "warn" : undefined}
            />
          </span>
        ),
    },
    {
      id: "rate",
      title: "Starts",
      render: ({ rate, starts }) =>
        rate === null ? (
          <span class="t3">no rate</span>
        ) : (
          <span class="stack-meter">
            <span class="nowrap">
              {starts} of {rateWords(rate)}
            </span>
            <Meter
              share={starts / rate.limit}
              label={`${starts} of ${rate.limit} starts are used`}
              tone={starts >= rate.limit ? "warn" : undefined}
            />
          </span>
        ),
    },
    ...waitingColumns(onForm),
  ];
}

function waitingColumns(onForm: (limit: Limit, name: FormName) => void): Column<Limit>[] {
  return [
    { id: "waiting", title: "Wait for it", isNumber: true, render: ({ waiting }) => countText(waiting) },
    {
      id: "next",
      title: "Room again",
      class: "nowrap t2",
      render: ({ next_at, available, waiting }) =>
        next_at !== null ? (
          <Time at={next_at} />
        ) : available !== null && available > 0 ? (
          "now"
        ) : waiting > 0 ? (
          "when one ends"
        ) : (
          "–"
        ),
    },
    {
      ...ACTIONS_COLUMN,
      render: (limit) => (
        <span class="rowf end">
          <Button small whyNot={whyNot("operate")} onClick={() => onForm(limit, "override")}>
            Override…
          </Button>
          {limit.override && (
            <Button small whyNot={whyNot("operate")} onClick={() => onForm(limit, "lift")}>
              Remove override…
            </Button>
          )}
        </span>
      ),
    },
  ];
}

const isCount = (text: string) => text === "" || text === "none" || /^[1-9]\d{0,6}$/.test(text);

function OverrideForm({ limit, ...end }: FormEnd & { readonly limit?: Limit }) {
  const [key, setKey] = useState(limit?.key ?? "");
  const [concurrency, setConcurrency] = useState(String(limit?.concurrency ?? ""));
  const [starts, setStarts] = useState(limit?.rate ? String(limit.rate.limit) : "");
  const [per, setPer] = useState(limit?.rate ? periodText(limit.rate.period) : "1m");
  const span = readLimit(per);
  const isEmpty = concurrency === "" && starts === "";
  const isValid = isCount(concurrency) && isCount(starts) && (span !== undefined || !/^\d/.test(starts));
  const change = {
    ...(concurrency !== "" && { concurrency: concurrency === "none" ? "none" : Number(concurrency) }),
    ...(starts !== "" && {
      rate: starts === "none" ? "none" : { limit: Number(starts), period: `PT${(span ?? 0) / 1_000}S` },
    }),
  };
  const blocked =
    key.trim() === ""
      ? "Name the key."
      : !isValid
        ? "Correct the marked fields."
        : isEmpty
          ? "Say how many run at once, or how many start."
          : undefined;
  return (
    <ActionForm
      title={limit ? `Override ${limit.key}` : "Override the limit of a key"}
      action="Set the override"
      blocked={blocked}
      act={(reason) => overrideLimit(key.trim(), change, reason)}
      said={`Key ${key.trim()} has a new limit.`}
      {...end}
    >
      <p>
        It holds over what the jobs say, for every process and at once, until somebody removes it.
        {limit && limit.waiting > 0 && ` ${plural(limit.waiting, "job waits", "jobs wait")} for this key.`}
      </p>
      {!limit && <TextField label="Key" value={key} onInput={setKey} isMono isFirst />}
      <TextField
        label="Jobs at once"
        value={concurrency}
        onInput={(value) => setConcurrency(value.trim())}
        hint="A number; none lifts the bound; empty leaves it to the jobs."
        error={isCount(concurrency) ? undefined : "A whole number from 1, none, or nothing."}
      />
      <div class="f2">
        <TextField
          label="Starts"
          value={starts}
          onInput={(value) => setStarts(value.trim())}
          error={isCount(starts) ? undefined : "A whole number from 1, none, or nothing."}
        />
        <TextField
          label="in each"
          value={per}
          onInput={setPer}
          isMono
          error={span === undefined ? "Such as 1s, 1m or 1h." : undefined}
        />
      </div>
    </ActionForm>
  );
}
