import { setTimeout as wait } from "node:timers/promises";
import type { JobRow } from "../../../src/core/job/job.ts";
import { LIFECYCLE_EVENTS } from "../../../src/core/job/lifecycle-events.ts";
import type { Engine, JournalEvent } from "../../../src/index.ts";

/** Follows the stream of events while processes and the store are hurt, and holds it against the rows afterwards. */
export class EventCheck {
  readonly #engine: Engine;
  readonly #stop = new AbortController();
  readonly #followed: JournalEvent[] = [];
  readonly #following: Promise<void>;

  constructor(engine: Engine) {
    this.#engine = engine;
    this.#following = this.#follow();
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stop;
    for await (const event of this.#engine.journal.follow({ after: null, signal }))
      this.#followed.push(event);
  }

  /** What is wrong, once every job has ended: `rows` are all jobs that were acknowledged. */
  async check(rows: readonly JobRow[]): Promise<{ problems: string[]; doubled: number }> {
    const events = await this.#readAll();
    // A real pause: the follower may still be a poll behind.
    for (let tries = 0; tries < 100 && this.#followed.length < events.length; tries++) await wait(100);
    this.#stop.abort();
    await this.#following;
    return { problems: [...this.#missed(events), ...miscounted(events, rows)], doubled: doubled(events) };
  }

  get count(): number {
    return this.#followed.length;
  }

  async #readAll(): Promise<JournalEvent[]> {
    const events: JournalEvent[] = [];
    for (let after: string | null = null; ; ) {
      const page = await this.#engine.journal.read({ after, limit: 1_000 });
      events.push(...page.events);
      after = page.cursor;
      if (!page.hasMore) return events;
    }
  }

  /** Who followed from the beginning has seen what is there, in the same order, nothing twice and nothing left out. */
  #missed(events: readonly JournalEvent[]): string[] {
    const at = events.findIndex(({ cursor }, index) => this.#followed[index]?.cursor !== cursor);
    const found = `${this.#followed.length} events were followed, ${events.length} are there`;
    if (at >= 0) return [`the follower differs at event ${at}: ${found}`];
    return this.#followed.length === events.length ? [] : [found];
  }
}

const LIFECYCLE: ReadonlySet<string> = new Set(LIFECYCLE_EVENTS);
const ENDS = ["job.completed", "job.cancelled", "job.discarded"] as const;
const END_NAMES: ReadonlySet<string> = new Set(ENDS);

/** Counts jobs that have more than one end. */
function doubled(events: readonly JournalEvent[]): number {
  const ends = new Set(events.filter(({ name }) => END_NAMES.has(name)).map(({ id, job }) => `${job} ${id}`));
  const jobs = new Set([...ends].map((end) => end.split(" ")[0]));
  return ends.size - jobs.size;
}

/** Every job that was added has one enqueue event and one event of its end. No event reports an end that did not happen. */
function miscounted(events: readonly JournalEvent[], rows: readonly JobRow[]): string[] {
  const distinct = [...new Map(events.map((event) => [event.id, event])).values()];
  const ofJob = Map.groupBy(distinct, ({ job }) => job);
  return rows.flatMap(({ id, state, attempt }) => {
    // What a worker notes of itself, such as a verdict that came too late, is no part of the job's life.
    const names = (ofJob.get(id) ?? []).map(({ name }) => name).filter((name) => LIFECYCLE.has(name));
    const count = (name: string) => names.filter((each) => each === name).length;
    const wanted = ENDS.map((name) => Number(name === `job.${state}`));
    const isTold = count("job.enqueued") === 1 && ENDS.every((name, index) => count(name) === wanted[index]);
    const starts = new Set(
      (ofJob.get(id) ?? []).filter(({ name }) => name === "job.started").map((event) => event.attempt),
    );
    return isTold && names[0] === "job.enqueued" && names.at(-1) === `job.${state}` && starts.has(attempt)
      ? []
      : [`${id} is ${state} in attempt ${attempt}, but it was told: ${names.join(", ")}`];
  });
}
