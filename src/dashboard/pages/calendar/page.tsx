import { useState } from "preact/hooks";
import type { Calendar, ExplainedTime } from "../../../ojs/replies/settings-replies.ts";
import { useResource } from "../../api/resource.ts";
import { explainTime, readCalendar } from "../../api/settings.ts";
import { now, serverNow } from "../../state/clock.ts";
import { go, href, hrefWith, query } from "../../state/router.ts";
import { whyNot } from "../../state/session.ts";
import { Button } from "../../ui/button.tsx";
import { Callout } from "../../ui/callout.tsx";
import { Card, Crumb, Facts, PageHead } from "../../ui/card.tsx";
import { TextField } from "../../ui/fields.tsx";
import { plural } from "../../ui/format.ts";
import { MonthHead } from "../../ui/month-head.tsx";
import { Shown } from "../../ui/shown.tsx";
import { Time } from "../../ui/time.tsx";
import { useForm } from "../../ui/use-form.ts";
import { CalendarForm, DeleteCalendarForm } from "../calendars/calendar-forms.tsx";
import {
  DAY_NAMES,
  dateName,
  daysLeft,
  monthBy,
  monthName,
  monthOf,
  openText,
  upcoming,
  WEEK,
  weekWords,
} from "../calendars/calendar-words.ts";

export function Page({ params }: { readonly params: Readonly<Record<string, string>> }) {
  const name = params.name ?? "";
  const calendar = useResource(`calendar ${name}`, (signal) => readCalendar(name, signal), { live: 15_000 });
  return (
    <Shown of={calendar} what={`Calendar ${name}`}>
      {(data) => <Details calendar={data.calendar} onChange={calendar.reload} />}
    </Shown>
  );
}

function Details({ calendar, onChange }: { readonly calendar: Calendar; readonly onChange: () => void }) {
  const { form, open, end } = useForm<"change" | "delete">(onChange);
  const why = whyNot("operate");
  return (
    <>
      <PageHead
        title={calendar.name}
        tab={`Calendar ${calendar.name}`}
        above={<Crumb href={href("calendars")}>Calendars</Crumb>}
        below={`Open ${weekWords(calendar)}, by the clocks of ${calendar.zone}.`}
      >
        <Button kind="primary" whyNot={why} onClick={() => open("change")}>
          Change…
        </Button>
        <Button kind="danger" whyNot={why} onClick={() => open("delete")}>
          Delete…
        </Button>
      </PageHead>
      <Ends calendar={calendar} />
      <div class="pair">
        <Month calendar={calendar} />
        <div class="stack-cards">
          <Explain calendar={calendar} />
          <OtherDays calendar={calendar} />
        </div>
      </div>
      {form === "change" && <CalendarForm calendar={calendar} {...end} />}
      {form === "delete" && (
        <DeleteCalendarForm calendar={calendar} onClose={end.onClose} onDone={() => go(href("calendars"))} />
      )}
    </>
  );
}

const SOON = 60;

/** A list of holidays that ends is worse than none: times after it look right. */
function Ends({ calendar }: { readonly calendar: Calendar }) {
  const left = daysLeft(calendar, now.value);
  if (left === null || left >= SOON || !calendar.until) return null;
  return (
    <Callout tone={left < 0 ? "force" : "soft"}>
      <p>
        Its holidays are complete until {dateName(calendar.until)}
        {left < 0 ? ", which is over" : ` (${plural(left, "day")} left)`}. Times after that day take every
        weekday for a working day.
      </p>
    </Callout>
  );
}

function Month({ calendar }: { readonly calendar: Calendar }) {
  const today = dayIn(calendar.zone, serverNow());
  const asked = query.value.get("month") ?? "";
  const month = monthOf(calendar, asked) === null ? today.slice(0, 7) : asked;
  const cells = monthOf(calendar, month) ?? [];
  return (
    <section class="card month open-days" aria-label={`Working days of ${monthName(month)}`}>
      <MonthHead
        name={monthName(month)}
        previous={hrefWith({ month: monthBy(month, -1) })}
        next={hrefWith({ month: monthBy(month, 1) })}
      />
      <ul class="days">
        {WEEK.map((day) => (
          <li key={day} class="wd" aria-hidden="true">
            {DAY_NAMES[day].slice(0, 2)}
          </li>
        ))}
        {cells.map(({ date, number, isInMonth, hours, name, isSpecial }) => (
          <li
            key={date}
            class={[
              "open-day",
              hours === null ? "shut" : "",
              isSpecial ? "own" : "",
              isInMonth ? "" : "out",
            ].join(" ")}
            data-today={date === today ? "" : undefined}
            title={[dateName(date), name, hours ?? "closed"].filter(Boolean).join(", ")}
          >
            <b>{number}</b>
            <small>{hours === null ? "closed" : openText(hours)}</small>
            {name !== null && <small class="clip">{name}</small>}
          </li>
        ))}
      </ul>
      <p class="foot">Grey days are closed. Marked days differ from their weekday.</p>
    </section>
  );
}

/** The date that it is in a zone, as `2026-12-24`. */
function dayIn(zone: string, at: number): string {
  try {
    return new Intl.DateTimeFormat("en-CA", {
      timeZone: zone,
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
    }).format(at);
  } catch {
    return new Date(at).toISOString().slice(0, 10);
  }
}

/** Which instant a time by this calendar means, in the server's words. */
function Explain({ calendar }: { readonly calendar: Calendar }) {
  const [days, setDays] = useState("2");
  const [at, setAt] = useState("17:00");
  const [cutOff, setCutOff] = useState("");
  const [said, setSaid] = useState<ExplainedTime | string>();
  const run = async () => {
    const result = await explainTime({
      calendar: calendar.name,
      ...(days.trim() !== "" && { working_days: Number(days) }),
      ...(at.trim() !== "" && { at: at.trim() }),
      ...(cutOff.trim() !== "" && { cut_off: cutOff.trim() }),
    });
    setSaid(result.ok ? result.data : result.error.message);
  };
  return (
    <Card title="When would it be?">
      <form
        class="pad stack-gap"
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <div class="f3">
          <TextField label="Working days" value={days} onInput={setDays} isMono />
          <TextField label="At" value={at} onInput={setAt} isMono placeholder="close" />
          <TextField label="Cut-off" value={cutOff} onInput={setCutOff} isMono placeholder="none" />
        </div>
        <div class="rowf">
          <Button submit>Count from now</Button>
          <span class="t3">Nothing is stored.</span>
        </div>
        {typeof said === "string" && <Callout tone="soft">{said}</Callout>}
        {typeof said === "object" && (
          <Callout tone="run">
            <div class="grow">
              <p>
                <b>{said.local}</b> in {said.zone}, <Time at={said.at} />
              </p>
              <p class="t2">{said.text}</p>
            </div>
          </Callout>
        )}
      </form>
    </Card>
  );
}

const MOST = 12;

function OtherDays({ calendar }: { readonly calendar: Calendar }) {
  const next = upcoming(calendar, dayIn(calendar.zone, serverNow()));
  return (
    <Card title="Special days to come" note={plural(next.length, "day")}>
      {next.length === 0 ? (
        <p class="pad t2">None: every weekday is as the week says.</p>
      ) : (
        <div class="pad wide-names">
          <Facts
            of={next
              .slice(0, MOST)
              .map(({ date, hours, name }) => [
                dateName(date),
                [hours ?? "closed", name].filter(Boolean).join(", "),
              ])}
          />
          {next.length > MOST && <p class="t3">and {plural(next.length - MOST, "more day", "more days")}</p>}
        </div>
      )}
    </Card>
  );
}
