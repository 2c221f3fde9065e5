import { useState } from "preact/hooks";
import type { Saga } from "../../../ojs/replies/saga-replies.ts";
import type { Events, WireEvent } from "../../../ojs/replies/wire-replies.ts";
import { useResource } from "../../api/resource.ts";
import { readSagaEvents } from "../../api/sagas-and-timeouts.ts";
import { toast } from "../../state/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { countText, plural } from "../../ui/format.ts";
import { Mark } from "../../ui/icon.tsx";
import { Shown } from "../../ui/shown.tsx";
import { Time } from "../../ui/time.tsx";

/** One request reads at most 5,000 events. One click sends at most this many. */
const MOST_REQUESTS = 20;

/** What was found of a saga, and which events were read for it. */
interface Found {
  readonly events: readonly WireEvent[];
  readonly scanned: number;
  /** When the oldest event happened that was read. */
  readonly from: string | null;
  /** Where older events begin; null if there are none. */
  readonly before: string | null;
}

const foundIn = ({ events, scanned = 0, searched_from = null, before = null }: Events): Found => ({
  events,
  scanned,
  from: searched_from,
  before,
});

/** Joins what two searches found. The reach is that of the one which went further back. */
function joined(older: Found | null, newest: Found): Found {
  if (!older) return newest;
  const known = new Set(older.events.map(({ id }) => id));
  return { ...older, events: [...older.events, ...newest.events.filter(({ id }) => !known.has(id))] };
}

/** Whether older events can have more of its steps. */
function hasOlder({ started_at }: Pick<Saga, "started_at">, { events, from, before }: Found): boolean {
  if (before === null || events.some(({ type }) => type === "saga.started")) return false;
  return from === null || Date.parse(from) >= Date.parse(started_at);
}

export function Steps({ saga }: { readonly saga: Saga }) {
  const { type, id, version } = saga;
  const [older, setOlder] = useState<Found | null>(null);
  const [isLooking, setLooking] = useState(false);
  const newest = useResource(
    `saga events ${type} ${id} ${version}`,
    (signal) => readSagaEvents(saga, null, signal),
    { live: 6_000 },
  );
  const lookBack = async (start: Found) => {
    setLooking(true);
    let found = start;
    for (let requests = 0; requests < MOST_REQUESTS && hasOlder(saga, found); requests++) {
      const reply = await readSagaEvents(saga, found.before);
      if (!reply.ok) {
        toast(reply.error.message, { kind: "failed" });
        break;
      }
      const next = foundIn(reply.data);
      const isHit = next.events.length > 0;
      found = { ...next, events: [...next.events, ...found.events], scanned: found.scanned + next.scanned };
      setOlder(found);
      if (isHit) break;
    }
    setLooking(false);
  };
  return (
    <Card title="Steps" note="the newest first">
      <Shown of={newest} what="Its history" rows={4}>
        {(data) => {
          const found = joined(older, foundIn(data));
          return (
            <>
              <StepList events={found.events} />
              <Reach saga={saga} found={found} isLooking={isLooking} onLook={() => lookBack(found)} />
            </>
          );
        }}
      </Shown>
    </Card>
  );
}

interface ReachProps {
  readonly saga: Saga;
  readonly found: Found;
  readonly isLooking: boolean;
  readonly onLook: () => void;
}

/** Which events were searched, and the way further back. */
function Reach({ saga, found, isLooking, onLook }: ReachProps) {
  const { events, scanned, from } = found;
  const canLook = hasOlder(saga, found);
  if (!canLook && events.some(({ type }) => type === "saga.started")) return null;
  return (
    <div class="foot bare">
      <span role="status">
        {plural(events.length, "step")} found among {countText(scanned)} events of all kinds
        {from !== null && (
          <>
            , back to <Time at={from} as="when" />
          </>
        )}
        .{" "}
        {canLook
          ? "It began earlier."
          : "That is all: the events of its start are deleted, or were not recorded."}
      </span>
      {canLook && (
        <span class="push rowf">
          <Button small busy={isLooking} onClick={onLook}>
            Look further back
          </Button>
        </span>
      )}
    </div>
  );
}

const LOOKS = {
  "saga.started": { mark: "running", tone: "run", says: "started by" },
  "saga.handled": { mark: "done", tone: "done", says: "handled" },
  "saga.completed": { mark: "done", tone: "done", says: "completed with" },
  "saga.ignored": { mark: "cancelled", tone: "off", says: "ignored" },
  "saga.not_found": { mark: "cancelled", tone: "off", says: "was not there for" },
  "saga.failed": { mark: "discarded", tone: "force", says: "failed at" },
} as const;

function StepList({ events }: { readonly events: readonly WireEvent[] }) {
  if (events.length === 0)
    return <p class="pad t2">None of its steps is among the events that were searched.</p>;
  return (
    <ol class="lines steps">
      {events.toReversed().map(({ id, type, time, data }) => {
        const look = LOOKS[type as keyof typeof LOOKS] ?? { mark: "info", tone: "wait", says: type };
        const event = data.event as { readonly kind?: string; readonly name?: string } | undefined;
        return (
          <li key={id} class={`is-${look.tone}`}>
            <Mark name={look.mark} />
            <span class="t3 nowrap when">
              <Time at={time} as="when" />
            </span>
            <span>
              {look.says} the {event?.kind ?? "message"} <b>{event?.name}</b>
            </span>
            {typeof data.error === "string" && <span class="tone clip">{data.error}</span>}
            {data.because !== undefined && <span class="t3 clip">{plain(data.because)}</span>}
          </li>
        );
      })}
    </ol>
  );
}

const plain = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
