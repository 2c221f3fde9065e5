import { useState } from "preact/hooks";
import { useResource } from "../../api/resource.ts";
import { readCalendars } from "../../api/settings.ts";
import type { Page as PageOf } from "../../api/wire.ts";
import type { Calendar } from "../../api/wire-settings.ts";
import { now, serverNow } from "../../state/clock.ts";
import { go, href, query } from "../../state/router.ts";
import { whyNot } from "../../state/session.ts";
import { Tag } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Empty } from "../../ui/callout.tsx";
import { PageHead } from "../../ui/card.tsx";
import { Pager } from "../../ui/pager.tsx";
import { Commands, Shown } from "../../ui/shown.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { CalendarForm } from "./calendar-forms.tsx";
import { dateName, daysLeft, upcoming, weekWords } from "./calendar-words.ts";

/** The working days and hours that timeouts and crons may count by. */
export function Page() {
  const cursor = query.value.get("cursor");
  const [isNew, setNew] = useState(false);
  const calendars = useResource(`calendars ${cursor}`, (signal) => readCalendars(cursor, signal), {
    live: 15_000,
  });
  return (
    <>
      <PageHead
        title="Calendars"
        below="Working days and hours that timeouts, sagas and crons count by: two working days, before 17:00."
      >
        <Button icon="plus" whyNot={whyNot("operate")} onClick={() => setNew(true)}>
          New calendar…
        </Button>
      </PageHead>
      <Shown of={calendars} what="The list" offers="calendars">
        {(page) => <List page={page} />}
      </Shown>
      {isNew && (
        <CalendarForm
          onClose={() => setNew(false)}
          onDone={(name) => {
            setNew(false);
            go(calendarHref(name));
          }}
        />
      )}
    </>
  );
}

const calendarHref = (name: string) => href(`calendars/${encodeURIComponent(name)}`);

function List({ page: { items, pagination } }: { readonly page: PageOf<Calendar> }) {
  if (items.length === 0)
    return (
      <div class="tablewrap">
        <Empty icon="calendars" title="No business calendar yet">
          <p>Write one as JSON, with a zone, a week and holidays, or make it here:</p>
          <Commands lines={["curfew calendars put frankfurt frankfurt.json"]} />
        </Empty>
      </div>
    );
  return (
    <>
      <Table
        label="Calendars"
        rows={items}
        columns={COLUMNS}
        idOf={({ name }) => name}
        hrefOf={({ name }) => calendarHref(name)}
      />
      <Pager shown={items.length} next={pagination.next_cursor} />
    </>
  );
}

const SOON = 60;

function Complete({ calendar }: { readonly calendar: Calendar }) {
  const left = daysLeft(calendar, now.value);
  if (left === null || !calendar.until) return <span class="t3">not said</span>;
  return (
    <span class="rowf nowrap">
      {dateName(calendar.until)}
      {left < 0 ? (
        <Tag tone="force">over</Tag>
      ) : left < SOON ? (
        <Tag tone="soft">{`${left} days left`}</Tag>
      ) : null}
    </span>
  );
}

const COLUMNS: readonly Column<Calendar>[] = [
  {
    id: "name",
    title: "Calendar",
    phone: "title",
    class: "c-name",
    render: ({ name }) => (
      <a class="name clip" href={calendarHref(name)} title={name}>
        {name}
      </a>
    ),
  },
  { id: "zone", title: "Zone", phone: "side", class: "t2 nowrap", render: ({ zone }) => zone },
  { id: "week", title: "Open", phone: "line", class: "c-wide", render: weekWords },
  {
    id: "next",
    title: "Next special day",
    render: (calendar) => {
      const [next] = upcoming(calendar, new Date(serverNow()).toISOString().slice(0, 10));
      if (!next) return <span class="t3">none</span>;
      return (
        <span class="two">
          <span class="clip">{next.name ?? (next.hours === undefined ? "closed" : next.hours)}</span>
          <small class="nowrap">
            {dateName(next.date)}, {next.hours ?? "closed"}
          </small>
        </span>
      );
    },
  },
  { id: "days", title: "Special days", isNumber: true, render: ({ days }) => days.length },
  { id: "until", title: "Complete until", render: (calendar) => <Complete calendar={calendar} /> },
];
