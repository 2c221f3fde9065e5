import { useState } from "preact/hooks";
import type { Calendar, Weekday } from "../../../ojs/replies/settings-replies.ts";
import { deleteCalendar, putCalendar } from "../../api/settings.ts";
import { ActionForm } from "../../ui/action-form.tsx";
import { TextArea, TextField } from "../../ui/fields.tsx";
import { plural, zoneOfViewer } from "../../ui/format.ts";
import type { FormEnd } from "../../ui/use-form.ts";
import { DAY_NAMES, daysText, readDays, WEEK } from "./calendar-words.ts";

interface FormProps {
  /** Left out: a new one. */
  readonly calendar?: Calendar;
  readonly onClose: () => void;
  readonly onDone: (name: string) => void;
}

const HOURS = /^\d{2}:\d{2}-\d{2}:\d{2}$/;

const START: Pick<Calendar, "week" | "days"> = {
  week: Object.fromEntries(WEEK.slice(0, 5).map((day) => [day, "09:00-17:00"])),
  days: [],
};

export function CalendarForm({ calendar, onClose, onDone }: FormProps) {
  const from = calendar ?? START;
  const [name, setName] = useState(calendar?.name ?? "");
  const [zone, setZone] = useState(calendar?.zone ?? zoneOfViewer());
  const [week, setWeek] = useState<Readonly<Partial<Record<Weekday, string>>>>(from.week);
  const [text, setText] = useState(() => daysText(from.days));
  const [until, setUntil] = useState(calendar?.until ?? "");
  const { days, error } = readDays(text);
  const open = WEEK.flatMap((day) => {
    const hours = week[day]?.trim();
    return hours ? [[day, hours] as const] : [];
  });
  const isWeekValid = open.every(([, hours]) => HOURS.test(hours));
  const body = { zone: zone.trim(), week: Object.fromEntries(open), days, ...(until && { until }) };
  return (
    <ActionForm
      title={calendar ? `Change ${calendar.name}` : "A business calendar"}
      action={calendar ? "Change it" : "Store it"}
      blocked={name.trim() === "" ? "Name it." : isWeekValid ? error : "Hours are written 09:00-17:00."}
      act={(reason) => putCalendar(name.trim(), body, reason)}
      said={({ moved }) =>
        `Calendar ${name} is stored. ${moved === 0 ? "Nothing else moved." : `${plural(moved, "timeout or cron has", "timeouts and crons have")} another time now.`}`
      }
      onClose={onClose}
      onDone={() => onDone(name.trim())}
    >
      <p>Timeouts and crons that count by it get their new times at once.</p>
      <div class="f2">
        {!calendar && (
          <TextField label="Name" value={name} onInput={setName} isFirst isMono placeholder="frankfurt" />
        )}
        <TextField label="Zone" value={zone} onInput={setZone} isMono placeholder="Europe/Berlin" />
        <TextField
          label="Days are complete until"
          value={until}
          onInput={setUntil}
          isMono
          placeholder="2026-12-31"
        />
      </div>
      <fieldset class="week-fields">
        <legend>Open, in the zone; empty is closed</legend>
        {WEEK.map((day) => (
          <TextField
            key={day}
            label={DAY_NAMES[day]}
            value={week[day] ?? ""}
            onInput={(hours) => setWeek({ ...week, [day]: hours })}
            isMono
            placeholder="closed"
          />
        ))}
      </fieldset>
      <TextArea
        label="Special days, one a line: 2026-12-24 09:00-12:00 Christmas Eve, or 2026-12-25 closed Christmas"
        value={text}
        onInput={setText}
        rows={6}
        error={error}
      />
    </ActionForm>
  );
}

export function DeleteCalendarForm({ calendar, ...end }: FormEnd & { readonly calendar: Calendar }) {
  return (
    <ActionForm
      title={`Delete ${calendar.name}`}
      action="Delete the calendar"
      isDanger
      act={(reason) => deleteCalendar(calendar.name, reason)}
      said={`Calendar ${calendar.name} is deleted.`}
      does="Timeouts that wait keep their instants. It is refused while a cron uses the calendar."
      {...end}
    />
  );
}
