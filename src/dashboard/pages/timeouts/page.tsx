import { useState } from "preact/hooks";
import type { Timeout } from "../../../ojs/replies/wire-replies.ts";
import type { Result } from "../../api/client.ts";
import { areRead, useOnce, useResource } from "../../api/resource.ts";
import { type Listed, readTimeouts, type TimeoutQuery } from "../../api/sagas-and-timeouts.ts";
import { now, serverNow } from "../../state/clock.ts";
import { hrefWith, query } from "../../state/router.ts";
import { whyNot } from "../../state/session.ts";
import { Button } from "../../ui/button.tsx";
import { Callout, Empty } from "../../ui/callout.tsx";
import { PageHead } from "../../ui/card.tsx";
import { FilterBar } from "../../ui/filter-bar.tsx";
import { plural } from "../../ui/format.ts";
import { Commands, Shown } from "../../ui/shown.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { Agenda } from "./agenda.tsx";
import { type Day, dayName, dayOf, weeksOf } from "./calendar.ts";
import { Month } from "./month.tsx";
import { type Asked, TimeoutForm } from "./timeout-forms.tsx";

/** A month is read in pages up to this many; a fuller one says so. */
const MOST_READ = 2_000;

interface Read {
  readonly items: readonly Timeout[];
  readonly isComplete: boolean;
}

async function readAll(asked: TimeoutQuery, signal: AbortSignal): Promise<Result<Read>> {
  const items: Timeout[] = [];
  let cursor: string | null = null;
  do {
    const result: Result<Listed<Timeout>> = await readTimeouts({ ...asked, cursor }, signal);
    if (!result.ok) return result;
    items.push(...result.data.items);
    cursor = result.data.pagination?.next_cursor ?? null;
  } while (cursor !== null && items.length < MOST_READ);
  items.sort((a, b) => Date.parse(a.due_at) - Date.parse(b.due_at));
  return { ok: true, data: { items, isComplete: cursor === null } };
}

function useTimeouts(destination: string | null, from: number, to: number) {
  const due = useResource(
    `timeouts ${destination} ${from}`,
    (signal) => readAll({ destination, from, to, isDead: false }, signal),
    { live: 6_000 },
  );
  const dead = useResource(
    `dead timeouts ${destination}`,
    (signal) => readAll({ destination, isDead: true }, signal),
    { live: 6_000 },
  );
  // Dead ones are said above the others, so both come at once.
  const isReady = useOnce(areRead(due, dead));
  return { due: isReady ? due : { ...due, data: undefined }, dead };
}

/** The day and the month that are shown, as the URL says; today where it says none. */
function placeInTime() {
  const day = dayOf(query.value.get("day")) ?? dayOf(dayName(serverNow()));
  const month = weeksOf(
    Date.parse(`${query.value.get("month") ?? ""}-15T12:00:00`) || (day?.from ?? serverNow()),
  );
  const from = month[0]?.[0]?.from ?? 0;
  const to = month.at(-1)?.at(-1)?.to ?? 0;
  return { day, month, from, to };
}

/** What sagas and delayed messages have asked to be woken for. */
export function Page() {
  const destination = query.value.get("destination");
  const isDead = query.value.get("tab") === "dead";
  const { day, month, from, to } = placeInTime();
  const { due, dead } = useTimeouts(destination, from, to);
  const [asked, setAsked] = useState<Asked | null>(null);
  const destinations = [...new Set((due.data?.items ?? []).map((one) => one.destination))].sort();
  return (
    <>
      <PageHead title="Timeouts" below="What sagas and delayed messages have asked to be woken for." />
      <Tabs
        label="Which timeouts"
        current={isDead ? "dead" : "due"}
        tabs={[
          { id: "due", title: "Due", href: hrefWith({ tab: null }) },
          {
            id: "dead",
            title: "Dead",
            href: hrefWith({ tab: "dead" }),
            count: dead.data && countOf(dead.data),
          },
        ]}
      />
      <FilterBar
        drops={[]}
        filters={[
          {
            name: "destination",
            label: "destination",
            options: destinations.map((one) => [one, one]),
            isFree: true,
          },
        ]}
      />
      <Shown of={isDead ? dead : due} what="The list" offers="timeouts">
        {(read) =>
          isDead ? (
            <DeadList read={read} onAsk={setAsked} />
          ) : (
            <Due
              read={read}
              dead={dead.data}
              month={month}
              day={day}
              isFiltered={destination !== null}
              onAsk={setAsked}
            />
          )
        }
      </Shown>
      {asked && (
        <TimeoutForm
          name={asked.name}
          ids={asked.timeouts.map(({ id }) => id)}
          what={asked.timeouts[0]?.destination ?? ""}
          dueAt={asked.timeouts[0]?.due_at}
          onClose={() => setAsked(null)}
          onDone={() => {
            setAsked(null);
            due.reload();
            dead.reload();
          }}
        />
      )}
    </>
  );
}

interface DueProps {
  readonly read: Read;
  readonly dead: Read | undefined;
  readonly month: readonly (readonly Day[])[];
  readonly day: ReturnType<typeof dayOf>;
  readonly isFiltered: boolean;
  readonly onAsk: (asked: Asked) => void;
}

/** The month, and what is due from the chosen day on. */
function Due({ read, dead, month, day, isFiltered, onAsk }: DueProps) {
  return (
    <>
      {dead && dead.items.length > 0 && <DeadNote dead={dead} onAsk={onAsk} />}
      <div class="calendar">
        <Month weeks={month} timeouts={read.items} chosen={day?.name ?? ""} isComplete={read.isComplete} />
        <div class="min0">
          {read.items.length === 0 && <Nothing isFiltered={isFiltered} />}
          {day && read.items.length > 0 && <Agenda day={day} timeouts={read.items} onAsk={onAsk} />}
        </div>
      </div>
    </>
  );
}

const countOf = ({ items, isComplete }: Read) => `${items.length}${isComplete ? "" : "+"}`;

function Nothing({ isFiltered }: { readonly isFiltered: boolean }) {
  return (
    <div class="tablewrap">
      <Empty
        icon="timeouts"
        title={isFiltered ? "Nothing for this destination in this month" : "Nothing is due in this month"}
      >
        {!isFiltered && (
          <>
            <p>Sagas ask for timeouts, and so can you:</p>
            <Commands
              lines={[
                'await engine.timeouts.insert({ destination: "reminders", dueAt: { after: "24h" }, payload });',
              ]}
            />
          </>
        )}
      </Empty>
    </div>
  );
}

function DeadNote({ dead, onAsk }: { readonly dead: Read; readonly onAsk: (asked: Asked) => void }) {
  const [first] = dead.items;
  return (
    <div class="gap">
      <Callout tone="force">
        <div class="grow">
          <p>
            <b>
              {plural(dead.items.length, "timeout is", "timeouts are")} dead after{" "}
              {plural(first?.tries ?? 0, "try", "tries")}.
            </b>{" "}
            {dead.items.length === 1
              ? "Nobody handles it until it is requeued."
              : "Nobody handles them until they are requeued."}
          </p>
          <p class="clip">
            <code>{first?.destination}</code>: {first?.error ?? "no error was kept"}
          </p>
        </div>
        <Button
          small
          whyNot={whyNot("operate")}
          onClick={() => onAsk({ name: "requeue", timeouts: dead.items })}
        >
          {`Requeue ${dead.items.length}…`}
        </Button>
      </Callout>
    </div>
  );
}

function DeadList({ read, onAsk }: { readonly read: Read; readonly onAsk: (asked: Asked) => void }) {
  if (read.items.length === 0)
    return (
      <div class="tablewrap">
        <Empty icon="timeouts" title="No timeout is dead">
          <p>One that was refused ten times stands here, until somebody requeues or revokes it.</p>
        </Empty>
      </div>
    );
  const end = Math.max(now.peek(), ...read.items.map(({ due_at }) => Date.parse(due_at))) + 1;
  return (
    <>
      <p class="rowf gap">
        <Button whyNot={whyNot("operate")} onClick={() => onAsk({ name: "requeue", timeouts: read.items })}>
          {`Requeue all ${read.items.length}…`}
        </Button>
      </p>
      <Agenda day={{ name: "", from: 0, to: end }} timeouts={read.items} onAsk={onAsk} isDead />
    </>
  );
}
