import { signal } from "@preact/signals";
import type { Pulse } from "../../ojs/replies/wire-replies.ts";
import { apiUrl, type Query } from "../api/client.ts";
import { after, every, localNow } from "../system.ts";
import { heardServerTime, isTicking, serverNow } from "./clock.ts";

/**
 * What happens on the server, as it happens. One line serves the whole page: a figure every three seconds. A tab that
 * nobody looks at holds no line, because a browser has only six connections per server for all its tabs.
 */

export type LiveState = "connecting" | "live" | "stale";
export const liveState = signal<LiveState>("connecting");
/** When something was heard last, by the server's clock. */
export const heardAt = signal<number | null>(null);
/** Counts up with every pulse. Whatever is to be kept fresh reads again when it changes. */
export const pulse = signal(0);
/** The figures of the last pulse. */
export const figures = signal<Pulse | null>(null);

/** What was heard over time, for plots. The server notes it once a minute; this is finer. */
export interface Sample {
  readonly at: number;
  readonly waiting: number;
  readonly oldestWait: number | null;
}
export const samples = signal<readonly Sample[]>([]);
/** Half an hour of pulses. */
const MOST_SAMPLES = 600;

function sampleOf({ queues, oldest_wait_ms }: Pulse): Sample {
  const waiting = queues.reduce((sum, queue) => sum + Number(queue.available ?? 0), 0);
  return { at: serverNow(), waiting, oldestWait: oldest_wait_ms ?? null };
}

/** Pulses come every 3 s. */
const SILENCE = 10_000;
const FIRST_RETRY = 1_000;
const LONGEST_RETRY = 30_000;

interface LineOptions {
  /** Read anew whenever the line is opened, where it is a function: so a line can go on where it was cut. */
  readonly query?: Query | (() => Query);
  /** Called for each event that has a name, with its parsed data and its id. */
  readonly onEvent: (name: string, data: unknown, id: string) => void;
  readonly names: readonly string[];
  readonly onState?: (isOpen: boolean) => void;
}

/** Opens a line that comes back by itself; the result closes it. Rests while nobody looks at the tab. */
export function openLine(path: string, { query, onEvent, names, onState }: LineOptions): () => void {
  let source: EventSource | undefined;
  let cancel = () => {};
  let wait = FIRST_RETRY;
  const close = () => {
    cancel();
    source?.close();
    source = undefined;
  };
  const open = () => {
    close();
    if (document.hidden) return;
    const line = new EventSource(apiUrl(path, typeof query === "function" ? query() : query), {
      withCredentials: true,
    });
    source = line;
    line.onopen = () => {
      wait = FIRST_RETRY;
      onState?.(true);
    };
    line.onerror = () => {
      onState?.(false);
      // A refused line is not opened again by the browser.
      close();
      cancel = after(wait, open);
      wait = Math.min(wait * 2, LONGEST_RETRY);
    };
    for (const name of names)
      line.addEventListener(name, (event) => {
        const { data, lastEventId } = event as MessageEvent<string>;
        onEvent(name, parse(data), lastEventId);
      });
  };
  document.addEventListener("visibilitychange", open);
  open();
  return () => {
    document.removeEventListener("visibilitychange", open);
    close();
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Starts the page's own line; the result ends it. */
export function startLive(): () => void {
  const heard = (data: unknown) => {
    const said = data as Pulse | null;
    if (!said) return;
    heardServerTime(Date.parse(said.timestamp));
    figures.value = said;
    samples.value = [...samples.value, sampleOf(said)].slice(-MOST_SAMPLES);
    heardAt.value = serverNow();
    liveState.value = "live";
    isTicking.value = true;
    pulse.value += 1;
  };
  const closeLine = openLine("/admin/stats/stream", {
    query: { types: "none" },
    names: ["metrics"],
    onEvent: (_name, data) => heard(data),
  });
  let lookedAt = localNow();
  const stop = every(1_000, () => {
    // A tab that was asleep gets the time to be heard again before it is called stale.
    const wasAsleep = document.hidden || localNow() - lookedAt > SILENCE / 2;
    lookedAt = localNow();
    if (wasAsleep || liveState.value !== "live") return;
    if (heardAt.value !== null && serverNow() - heardAt.value > SILENCE) {
      liveState.value = "stale";
      isTicking.value = false;
    }
  });
  return () => {
    closeLine();
    stop();
  };
}
