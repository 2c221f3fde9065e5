import { useEffect, useRef, useState } from "preact/hooks";
import { EVENT_NAMES } from "../../../ojs/event-names.ts";
import type { Events, WireEvent } from "../../../ojs/replies/wire-replies.ts";
import { type ApiError, api } from "../../api/client.ts";
import { serverNow } from "../../state/clock.ts";
import { openLine } from "../../state/live.ts";
import { every } from "../../system.ts";

/** What the list shows: an event, or that the line was cut for a while. */
export type Line =
  | { readonly kind: "event"; readonly event: WireEvent }
  | { readonly kind: "gap"; readonly id: string; readonly lostAt: number; readonly backAt: number };

export interface TailFilter {
  readonly types: string | null;
  readonly queue: string | null;
  readonly job: string | null;
}

export interface Tail {
  /** The newest last. */
  readonly lines: readonly Line[];
  readonly isOpen: boolean;
  readonly isLoading: boolean;
  /** How many came while it was held. */
  readonly held: number;
  /** Lines that were dropped, because only the newest are kept. */
  readonly dropped: number;
  readonly error: ApiError | undefined;
  clear(): void;
}

/** Older events are dropped: a tab may stay open for days. */
export const MOST_LINES = 500;
const FIRST = 100;
/** Events are shown together, four times a second: thousands a second must not draw thousands of times. */
const DRAW_EVERY = 250;

const idOf = (line: Line) => (line.kind === "event" ? line.event.id : line.id);

/** The newest events, then those that come. `isHeld` keeps the list still; nothing is lost meanwhile but the oldest. */
export function useTail(filter: TailFilter, isHeld: boolean): Tail {
  const key = JSON.stringify(filter);
  const [lines, setLines] = useState<readonly Line[]>([]);
  const [isOpen, setOpen] = useState(false);
  const [isLoading, setLoading] = useState(true);
  const [error, setError] = useState<ApiError>();
  const [held, setHeld] = useState(0);
  const [dropped, setDropped] = useState(0);
  const waiting = useRef<Line[]>([]);
  const hold = useRef(isHeld);
  hold.current = isHeld;

  // Begins anew when the filter is another one.
  useEffect(() => {
    let isGone = false;
    let close = () => {};
    let cursor: string | null = null;
    let lostAt: number | null = null;
    const asked = { types: filter.types, queue: filter.queue, job_id: filter.job };
    setLines([]);
    setLoading(true);
    setDropped(0);
    waiting.current = [];
    const begin = () => {
      close = openLine("/events/stream", {
        query: () => ({ ...asked, after: cursor }),
        names: EVENT_NAMES,
        onEvent: (_name, data, id) => {
          cursor = id || cursor;
          const event = data as WireEvent | null;
          if (event) waiting.current.push({ kind: "event", event });
        },
        onState: (isUp) => {
          setOpen(isUp);
          if (!isUp) lostAt ??= serverNow();
          else if (lostAt !== null) {
            waiting.current.push({ kind: "gap", id: `gap ${lostAt}`, lostAt, backAt: serverNow() });
            lostAt = null;
          }
        },
      });
    };
    api.get<Events>("/events", { ...asked, limit: FIRST }).then((result) => {
      if (isGone) return;
      setLoading(false);
      setError(result.ok ? undefined : result.error);
      if (!result.ok) return;
      cursor = result.data.cursor;
      setLines(result.data.events.map((event) => ({ kind: "event", event })));
      begin();
    });
    const stop = every(DRAW_EVERY, () => {
      if (waiting.current.length > MOST_LINES) waiting.current.splice(0, waiting.current.length - MOST_LINES);
      setHeld(hold.current ? waiting.current.length : 0);
      if (hold.current || waiting.current.length === 0) return;
      const came = waiting.current;
      waiting.current = [];
      setLines((before) => joined(before, came, (count) => setDropped((sum) => sum + count)));
    });
    return () => {
      isGone = true;
      close();
      stop();
    };
  }, [key]);
  return { lines, isOpen, isLoading, held, dropped, error, clear: () => setLines([]) };
}

/** Without what is there already, and without the oldest where there are too many. */
function joined(before: readonly Line[], came: readonly Line[], onDrop: (count: number) => void): Line[] {
  const known = new Set(before.map(idOf));
  const all = [...before, ...came.filter((line) => !known.has(idOf(line)))];
  if (all.length <= MOST_LINES) return all;
  onDrop(all.length - MOST_LINES);
  return all.slice(-MOST_LINES);
}
