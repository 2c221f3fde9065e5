import { useEffect, useRef, useState } from "preact/hooks";
import { serverNow } from "../state/clock.ts";
import { pulse } from "../state/live.ts";
import { query } from "../state/router.ts";
import { type ApiError, acceptAge, type Result } from "./client.ts";

/** What a page knows of something on the server. What was read once stays while it is read again, or cannot be. */
export interface Resource<Value> {
  readonly data: Value | undefined;
  readonly error: ApiError | undefined;
  readonly isLoading: boolean;
  /** When `data` was read, by the server's clock. */
  readonly at: number | undefined;
  reload(): void;
}

/** Pulses come every 3 s, so no pulse gets what an earlier one got. */
const PULSE_AGE = 2;

interface Options {
  /** Reads again with every pulse of the live line (each 3 s), at most this often in milliseconds; false: never. */
  readonly live?: number | false;
}

/**
 * Reads something and keeps it fresh. `key` says what it is: when it changes, what was read is dropped. A null key reads
 * nothing.
 */
export function useResource<Value>(
  key: string | null,
  read: (signal: AbortSignal) => Promise<Result<Value>>,
  { live = false }: Options = {},
): Resource<Value> {
  const [state, setState] = useState<Omit<Resource<Value>, "reload"> & { readonly key: string | null }>(
    emptyOf(key),
  );
  const [turn, setTurn] = useState(0);
  const isPulse = useRef(false);
  const latest = useRef(read);
  latest.current = read;
  const readAt = useRef(0);

  // A new turn reads again.
  useEffect(() => {
    if (key === null) return;
    const gone = new AbortController();
    readAt.current = serverNow();
    setState((before) => (before.key === key ? { ...before, isLoading: true } : emptyOf(key)));
    const start = () => latest.current(gone.signal);
    const reply = isPulse.current ? acceptAge(PULSE_AGE, start) : start();
    isPulse.current = false;
    reply.then((result) => {
      if (gone.signal.aborted) return;
      setState((before) =>
        result.ok
          ? { key, data: result.data, error: undefined, isLoading: false, at: serverNow() }
          : { ...before, key, error: result.error, isLoading: false },
      );
    });
    return () => gone.abort();
  }, [key, turn]);

  const beat = live === false ? 0 : pulse.value;
  useEffect(() => {
    if (live === false || beat === 0 || serverNow() - readAt.current < live) return;
    isPulse.current = true;
    setTurn((count) => count + 1);
  }, [beat, live]);

  const shown = state.key === key ? state : emptyOf<Value>(key);
  const reload = () => {
    isPulse.current = false;
    setTurn((count) => count + 1);
  };
  return { ...shown, reload };
}

/** Reads the page of a list that the cursor in the address names. */
export function usePage<Value>(
  what: string,
  read: (cursor: string | null, signal: AbortSignal) => Promise<Result<Value>>,
  live: number,
): Resource<Value> {
  const cursor = query.value.get("cursor");
  return useResource(`${what} ${cursor}`, (signal) => read(cursor, signal), { live });
}

/**
 * Whether all of them were read, or could not be. A page that shows them one by one as they come pushes what the viewer is
 * about to press.
 */
export const areRead = (...all: readonly Resource<unknown>[]): boolean =>
  all.every(({ data, error, isLoading }) => data !== undefined || error !== undefined || !isLoading);

/** True from the first time on that it was: what is on the screen is not taken away again. */
export function useOnce(isTrue: boolean): boolean {
  const was = useRef(false);
  was.current ||= isTrue;
  return was.current;
}

/** The last value that there was. */
export function useLast<Value>(value: Value | undefined): Value | undefined {
  const last = useRef(value);
  if (value !== undefined) last.current = value;
  return last.current;
}

function emptyOf<Value>(key: string | null) {
  const nothing: Omit<Resource<Value>, "reload"> = {
    data: undefined,
    error: undefined,
    isLoading: key !== null,
    at: undefined,
  };
  return { ...nothing, key };
}
