import type { ErrorRecord } from "../../core/job/job.ts";
import type { Json } from "../../core/schema.ts";
import type { Timer } from "../../ports/system.ts";
import type { EngineEvent } from "../bus.ts";
import type { Parts } from "../parts.ts";

/** An event as it is kept: what the engine said, with an id of its own. */
export interface KeptEvent {
  readonly id: string;
  readonly name: string;
  readonly at: number;
  readonly job: string;
  readonly type: string;
  readonly queue: string;
  readonly attempt: number;
  readonly [detail: string]: Json;
}

export interface EventPage {
  readonly events: readonly KeptEvent[];
  /** Continues after the last event that was looked at. */
  readonly cursor: string | null;
  readonly hasMore: boolean;
}

const FLUSH_AFTER = 100;
const MOST_AT_ONCE = 500;
/** While a store does not answer, only so many events wait for it; the oldest go first. */
const MOST_WAITING = 20_000;
const PAGE = 100;
/** How many rows are looked at for the newest events: a minute or so of a busy server. */
const LATEST_ROWS = 600;
/** A question whose filter fits nothing must come to an end: the cursor it gets continues where it stopped. */
const MOST_PAGES = 50;

/**
 * The events of this engine, kept in its store so that clients can read them by cursor. They are gathered for a tenth
 * of a second and written as one row, so that reading along costs little; a crash may lose that last moment of them,
 * never a job.
 */
export class EventJournal {
  readonly #parts: Parts;
  readonly #off: () => void;
  #waiting: KeptEvent[] = [];
  #timer: Timer | undefined;
  #writing: Promise<void> | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#off = parts.bus.onAny((event) => this.#hear(event));
  }

  #hear(event: EngineEvent): void {
    if (!("id" in event)) return;
    const { id: job, name, at, type, queue, attempt, error, dueAt, late, deadLetter, elapsed } = event;
    const progress = event.progress as Json | undefined;
    const { worker, maxAttempts } = event;
    this.#waiting.push({
      id: `evt_${this.#parts.nextId()}`,
      name,
      at,
      job,
      type,
      queue,
      attempt,
      ...(error && { error: withoutStack(error) }),
      ...(dueAt !== undefined && { dueAt }),
      ...(late && { late }),
      ...(deadLetter && { deadLetter }),
      ...(elapsed !== undefined && { elapsed }),
      ...(progress !== undefined && { progress }),
      ...(worker !== undefined && { worker }),
      ...(maxAttempts !== undefined && { maxAttempts }),
    });
    if (this.#waiting.length > MOST_WAITING) this.#waiting.splice(0, MOST_AT_ONCE);
    this.#timer ??= this.#parts.system.after(FLUSH_AFTER, () => {
      this.#timer = undefined;
      void this.flush();
    });
  }

  /** Writes what is waiting; a store that fails is asked again with the next flush. */
  flush(): Promise<void> {
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  async #write(): Promise<void> {
    const { store, clock, storeFailed } = this.#parts;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, MOST_AT_ONCE);
      try {
        await store.commit([{ effects: [{ event: batch }] }], { now: clock.now() });
      } catch (error) {
        storeFailed(error, "events");
        this.#waiting = [...batch, ...this.#waiting].slice(-MOST_WAITING);
        return;
      }
    }
  }

  /** Events after a cursor, in their order; the cursor is the store's own and the place within its row. */
  async read(after: string | null, limit: number, fits: (event: KeptEvent) => boolean): Promise<EventPage> {
    await this.flush();
    const { inspect } = this.#parts.store;
    const found: KeptEvent[] = [];
    let { row, skip } = splitCursor(after);
    for (let pages = 0; pages < MOST_PAGES; pages++) {
      const page = await inspect.events(row, PAGE);
      for (const [index, body] of page.events.entries()) {
        const batch = Array.isArray(body) ? (body as unknown as KeptEvent[]) : [];
        for (let at = index === 0 ? skip : 0; at < batch.length; at++) {
          const event = batch[at] as KeptEvent;
          if (!fits(event)) continue;
          found.push(event);
          if (found.length < limit) continue;
          // Asked for again up to here, because only the end of a page has a cursor.
          const before = index === 0 ? row : (await inspect.events(row, index)).cursor;
          return { events: found, cursor: joinCursor(before, at + 1), hasMore: true };
        }
      }
      const isEnd = page.events.length < PAGE;
      if (page.events.length > 0) skip = 0;
      row = page.cursor;
      if (isEnd) return { events: found, cursor: joinCursor(row, skip), hasMore: false };
    }
    return { events: found, cursor: joinCursor(row, 0), hasMore: true };
  }

  /** The newest events that fit, in their order, and the cursor to follow on from. */
  async readLatest(limit: number, fits: (event: KeptEvent) => boolean): Promise<EventPage> {
    await this.flush();
    const page = await this.#parts.store.inspect.latestEvents(LATEST_ROWS);
    const events = page.events.flatMap((body) =>
      Array.isArray(body) ? (body as unknown as KeptEvent[]) : [],
    );
    return {
      events: events.filter(fits).slice(-limit),
      cursor: joinCursor(page.cursor, 0),
      hasMore: false,
    };
  }

  /** Writes what is left and stops listening. */
  async close(): Promise<void> {
    this.#off();
    this.#timer?.cancel();
    await this.flush();
  }
}

/** The stack stays with the job: an event is read by many, and kept for long. */
function withoutStack({ stack: _stack, cause, ...error }: ErrorRecord): Json {
  const { stack: _inner, ...rest } = cause ?? {};
  return { ...error, ...(cause && { cause: rest }) } as unknown as Json;
}

function joinCursor(row: string | null, skip: number): string | null {
  return row === null && skip === 0 ? null : `${row ?? ""}~${skip}`;
}

/** Whether a text can be a cursor of ours: a store is never asked with anything else. */
export function isEventCursor(text: string): boolean {
  // As many digits as every store can count to.
  return /^(\d{1,18}(\.\d{1,18})?)?~\d{1,6}$/.test(text);
}

function splitCursor(cursor: string | null): { row: string | null; skip: number } {
  const [row = "", skip = "0"] = (cursor ?? "").split("~");
  return { row: row === "" ? null : row, skip: Number(skip) };
}
