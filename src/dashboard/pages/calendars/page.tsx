import type { Calendar } from "../../../ojs/replies/settings-replies.ts";
import type { Page as PageOf } from "../../../ojs/replies/wire-replies.ts";
import { usePage } from "../../api/resource.ts";
import { readCalendars } from "../../api/settings.ts";
import { now, serverNow } from "../../state/clock.ts";
import { go, href } from "../../state/router.ts";
import { Tag } from "../../ui/badge.tsx";
import { Empty } from "../../ui/callout.tsx";
import { ListPage } from "../../ui/list-page.tsx";
import { PagedTable } from "../../ui/paged-table.tsx";
import { Commands } from "../../ui/shown.tsx";
import { type Column, NAME_COLUMN, NameLink } from "../../ui/table.tsx";
import { CalendarForm } from "./calendar-forms.tsx";
import { dateName, daysLeft, upcoming, weekWords } from "./calendar-words.ts";

/** The working days and hours that timeouts and crons may count by. */
export function Page() {
  const calendars = usePage("calendars", readCalendars, 15_000);
  return (
    <ListPage
      title="Calendars"
      below="Working days and hours that timeouts, sagas and crons count by: two working days, before 17:00."
      of={calendars}
      offers="calendars"
      action="New calendar…"
      form={({ onClose }) => <CalendarForm onClose={onClose} onDone={(name) => go(calendarHref(name))} />}
    >
      {(page) => <List page={page} />}
    </ListPage>
  );
}

const calendarHref = (name: string) => href(`calendars/${encodeURIComponent(name)}`);

function List({ page }: { readonly page: PageOf<Calendar> }) {
  return (
    <PagedTable
      label="Calendars"
      page={page}
      columns={COLUMNS}
      idOf={({ name }) => name}
      hrefOf={({ name }) => calendarHref(name)}
      empty={
        <Empty icon="calendars" title="No business calendar yet">
          <p>Write one as JSON, with a zone, a week and holidays, or make it here:</p>
          <Commands lines={["curfew calendars put frankfurt frankfurt.json"]} />
        </Empty>
      }
    />
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
    ...NAME_COLUMN,
    render: ({ name }) => <NameLink href={calendarHref(name)}>{name}</NameLink>,
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
