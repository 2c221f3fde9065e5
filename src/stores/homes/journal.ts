import type { Home } from "../../core/home/cell.ts";
import type { Instant } from "../../core/time.ts";
import type { EventPage, RecordKey, RecordRow } from "../../ports/store.ts";
import type { HomeStore } from "./home-store.ts";

const PAGE = 500;
/** How many pages of one home a read moves at most. The next read goes on. */
const PAGES = 40;

/**
 * The journal of a store with several homes. Units write events in their own homes. A read first moves new events to the
 * home of settings, in the order of each home and under the version of a record that says how far it came.
 */
export class Journal {
  readonly #homes: readonly HomeStore[];
  readonly #clock: () => Promise<Instant>;
  readonly #onFailed: (home: Home, error: unknown) => void;

  constructor(
    homes: readonly HomeStore[],
    clock: () => Promise<Instant>,
    onFailed: (home: Home, error: unknown) => void,
  ) {
    this.#homes = homes;
    this.#clock = clock;
    this.#onFailed = onFailed;
  }

  async events(after: string | null, limit: number): Promise<EventPage> {
    await this.#collect();
    return this.#first.inspect.events(after, limit);
  }

  async latestEvents(limit: number, before?: string): Promise<EventPage> {
    await this.#collect();
    return this.#first.inspect.latestEvents(limit, before);
  }

  get #first(): HomeStore {
    return this.#homes[0] as HomeStore;
  }

  /** The events of a home that does not answer come later. */
  async #collect(): Promise<void> {
    const now = await this.#clock();
    const others = this.#homes.map((_, home) => home).slice(1);
    const positions = await this.#first.records.load(others.map(positionKey));
    await Promise.all(
      others.map((home, index) =>
        this.#move(home, positions[index] ?? null, now).catch((error) => this.#onFailed(home, error)),
      ),
    );
  }

  async #move(home: Home, from: RecordRow | null, now: Instant): Promise<void> {
    let position = from;
    for (let pages = 0; pages < PAGES; pages++) {
      const after = position ? (position.body as { cursor: string }).cursor : null;
      const page = await (this.#homes[home] as HomeStore).inspect.events(after, PAGE);
      if (page.events.length === 0) return;
      const key = positionKey(home);
      const unit = {
        when: [{ record: key, version: position?.version ?? 0 }],
        effects: [
          ...page.events.map((event) => ({ event })),
          { put: key, body: { cursor: page.cursor }, wakeAt: null },
        ],
      };
      await this.#first.commit([unit], { now });
      // This read or another one wrote the position: go on from there.
      [position = null] = await this.#first.records.load([key]);
      if (page.events.length < PAGE) return;
    }
  }
}

function positionKey(home: Home): RecordKey {
  return ["journal", home.toString()];
}
