import { useState } from "preact/hooks";
import type { Timeout } from "../../../ojs/replies/wire-replies.ts";
import { now, serverNow } from "../../state/clock.ts";
import { whyNot } from "../../state/session.ts";
import { Button } from "../../ui/button.tsx";
import { clockText, dayText, exactText, plural, shortId, zoneText } from "../../ui/format.ts";
import { JsonTree } from "../../ui/json-tree.tsx";
import { Time } from "../../ui/time.tsx";
import { sagaHref } from "../sagas/page.tsx";
import { countByHour, type Day, dayName } from "./calendar.ts";
import type { Asked } from "./timeout-forms.tsx";

const STEP = 100;
const DAYS_SHOWN = 7;
const longDay = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long" });

interface AgendaProps {
  readonly day: Pick<Day, "name" | "from" | "to">;
  readonly timeouts: readonly Timeout[];
  readonly onAsk: (asked: Asked) => void;
  readonly isDead?: boolean;
}

/** What is due on a day, and on the next days that have any. */
export function Agenda({ day, timeouts, onAsk, isDead = false }: AgendaProps) {
  if (isDead) return <Rows timeouts={timeouts} onAsk={onAsk} isDead />;
  const byDay = new Map<string, Timeout[]>([[day.name, []]]);
  for (const timeout of timeouts) {
    const at = Date.parse(timeout.due_at);
    if (at < day.from) continue;
    const name = dayName(at);
    byDay.set(name, [...(byDay.get(name) ?? []), timeout]);
  }
  return (
    <>
      {[...byDay].slice(0, DAYS_SHOWN).map(([name, own]) => (
        <OneDay key={name} day={name === day.name ? day : null} timeouts={own} onAsk={onAsk} />
      ))}
    </>
  );
}

function headOf(at: number): string {
  const name = dayName(at);
  if (name === dayName(serverNow())) return `Today, ${longDay.format(at)}`;
  if (name === dayName(serverNow() + 86_400_000)) return `Tomorrow, ${longDay.format(at)}`;
  return longDay.format(at);
}

interface OneDayProps {
  /** The chosen day, which has its hours drawn. */
  readonly day: Pick<Day, "name" | "from" | "to"> | null;
  readonly timeouts: readonly Timeout[];
  readonly onAsk: (asked: Asked) => void;
}

function OneDay({ day, timeouts, onAsk }: OneDayProps) {
  const at = day?.from ?? Date.parse(timeouts[0]?.due_at ?? "");
  const left = timeouts.filter(({ due_at }) => Date.parse(due_at) > now.value).length;
  return (
    <section class="agenda" aria-label={headOf(at)}>
      <h2>
        {headOf(at)}{" "}
        <span class="n">
          {timeouts.length === 0
            ? "nothing due"
            : left === timeouts.length
              ? `${timeouts.length} due`
              : `${timeouts.length} due, ${left} still to come`}
        </span>
        {clocksChange(at) && <span class="tag is-soft">clocks change</span>}
      </h2>
      {timeouts.length > 0 && (
        <div class="card">
          {day && timeouts.length > 3 && <Hours day={day} timeouts={timeouts} />}
          <Rows timeouts={timeouts} onAsk={onAsk} />
        </div>
      )}
    </section>
  );
}

const clocksChange = (at: number) => zoneText(at) !== zoneText(at + 86_399_000);

function Hours({
  day,
  timeouts,
}: {
  readonly day: Pick<Day, "from" | "to">;
  readonly timeouts: readonly Timeout[];
}) {
  const counts = countByHour(timeouts, day);
  const most = Math.max(1, ...counts);
  const width = 100 / counts.length;
  const at = ((now.value - day.from) / (day.to - day.from)) * 100;
  const labels = [0, 6, 12, 18].map((hour) => ({ hour, x: hour * width }));
  return (
    <svg
      class="hours"
      role="img"
      aria-label={`Due by the hour: ${counts
        .map((count, hour) => (count > 0 ? `${hour}:00 ${count}` : ""))
        .filter(Boolean)
        .join(", ")}`}
    >
      {counts.map((count, hour) =>
        count === 0 ? null : (
          <rect
            key={hour}
            class={(hour + 1) * width < at ? "past" : undefined}
            x={`${hour * width + 0.3}%`}
            width={`${width - 0.6}%`}
            y={44 - (count / most) * 38}
            height={(count / most) * 38}
            rx="2"
          />
        ),
      )}
      <line class="base" x1="0" x2="100%" y1="44.500" y2="44.500" />
      {at > 0 && at < 100 && <line class="now" x1={`${at}%`} x2={`${at}%`} y1="0" y2="44" />}
      {labels.map(({ hour, x }) => (
        <text key={hour} x={`${x}%`} y="58">
          {String(hour).padStart(2, "0")}
        </text>
      ))}
    </svg>
  );
}

function Rows({
  timeouts,
  onAsk,
  isDead = false,
}: {
  readonly timeouts: readonly Timeout[];
  readonly onAsk: (asked: Asked) => void;
  readonly isDead?: boolean;
}) {
  const [shown, setShown] = useState(STEP);
  const nowAt = timeouts.findIndex(({ due_at }) => Date.parse(due_at) > now.value);
  return (
    <div class={isDead ? "card" : undefined}>
      <ul class="due-list">
        {timeouts.slice(0, shown).map((timeout, index) => (
          <>
            {!isDead && index === nowAt && index > 0 && (
              <li key="now" class="nowline">
                now {clockText(now.value)}
              </li>
            )}
            <Row key={timeout.id} timeout={timeout} onAsk={onAsk} isDead={isDead} />
          </>
        ))}
      </ul>
      {timeouts.length > shown && (
        <p class="foot">
          <Button small onClick={() => setShown(shown + STEP)}>
            {`${plural(timeouts.length - shown, "more", "more")}`}
          </Button>
        </p>
      )}
    </div>
  );
}

interface RowProps {
  readonly timeout: Timeout;
  readonly onAsk: (asked: Asked) => void;
  readonly isDead: boolean;
}

function Row({ timeout, onAsk, isDead }: RowProps) {
  const { id, due_at, destination, saga, key, payload, tries, error, lease_until } = timeout;
  const [isOpen, setOpen] = useState(false);
  const at = Date.parse(due_at);
  const why = whyNot("operate");
  const isLeased = lease_until !== null && Date.parse(lease_until) > now.value;
  const ask = (name: Asked["name"]) => onAsk({ name, timeouts: [timeout] });
  return (
    <li>
      <span class="two" title={exactText(at)}>
        <b>{isDead ? `${dayText(at)}, ${clockText(at)}` : clockText(at)}</b>
        <small>{new Date(at).toISOString().slice(11, 19)} UTC</small>
      </span>
      <span class="t2 nowrap ago">
        <Time at={at} />
      </span>
      <span class="two what">
        <span class="rowf min0">
          <b class="clip" title={destination}>
            {timeout.name ?? destination}
          </b>
          {isLeased && <span class="tag is-run">in hand</span>}
          {tries > 0 && <span class="tag is-soft">{plural(tries, "try", "tries")}</span>}
        </span>
        <small class="clip">
          {saga ? (
            <>
              <a href={sagaHref(saga.type, saga.id)}>{saga.type}</a> <span class="mono">{saga.id}</span>
            </>
          ) : (
            timeout.name && destination
          )}
          {key !== null && `${saga || timeout.name ? ", " : ""}key ${key}`}
        </small>
        {error && <small class="is-force tone anywhere">{error}</small>}
      </span>
      <span class="rowf end acts">
        <Button small kind="ghost" expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          Payload
        </Button>
        {isDead ? (
          <Button small whyNot={why} onClick={() => ask("requeue")}>
            Requeue…
          </Button>
        ) : (
          <Button small whyNot={why} onClick={() => ask("reschedule")}>
            Reschedule…
          </Button>
        )}
        <Button small kind="danger" whyNot={why} onClick={() => ask("revoke")}>
          Revoke…
        </Button>
      </span>
      {isOpen && (
        <div class="payload">
          <p class="id">{shortId(id)}</p>
          <JsonTree value={payload} what="the payload" />
        </div>
      )}
    </li>
  );
}
