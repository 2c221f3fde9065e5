import type { NewEvent } from "../../core/event/new-event.ts";
import { jobEvent, type StoredEvent, workerOf } from "../../core/event/stored-event.ts";
import type { LifecycleEvent } from "../../core/job/decision.ts";
import type { NewJob } from "../../core/job/envelope.ts";
import type { JobDocuments, JobRow } from "../../core/job/job.ts";
import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import type { Unit } from "../../ports/store.ts";
import type { System, Timer } from "../../ports/system.ts";
import { Often } from "./event-throttle.ts";

/** What an event that tells of no job has to say. */
export interface Happening {
  readonly at: Instant;
  /** What it tells of: the name of a queue, the id of a workflow or a worker … */
  readonly subject?: string;
  readonly queue?: string;
  readonly data?: { readonly [key: string]: Json };
}

interface RecorderParts {
  readonly commit: (units: readonly Unit[]) => Promise<unknown>;
  readonly system: Pick<System, "after">;
  storeFailed(error: unknown, during: string): void;
}

const NONE: readonly NewEvent[] = [];
/** Characters. An event has no larger note: thousands of events are read at once, and the job itself has it. */
const LONGEST_PROGRESS = 16_000;
const NOTED_WITHIN = 100;
const NOTED_AT_ONCE = 500;
/** While a store does not answer, only so many notes wait for it; the oldest go first. */
const MOST_NOTED = 10_000;
const MOST_HEADS = 2_000;

/**
 * Makes the events that travel in the very commit they tell of. Off, which is how an engine begins, it makes nothing, and
 * nobody pays for it.
 */
export class EventRecorder {
  #isOn = false;
  readonly #parts: RecorderParts;
  readonly #often: Often;
  #onTurned: (isOn: boolean) => void = () => {};
  /** Heads by what they say: stores write one once for all events of a commit that have the same object. */
  readonly #heads = new Map<string, Json>();
  /** The last head of each name. */
  readonly #lastHeads = new Map<
    string,
    {
      readonly type: string;
      readonly queue: string;
      readonly worker: string | undefined;
      readonly head: Json;
    }
  >();
  /** Not in a `Batcher`: a timer sends them, and the oldest are dropped while the store is down. */
  #noted: NewEvent[] = [];
  #timer: Timer | undefined;
  #isClosed = false;
  #writing: Promise<void> | undefined;

  constructor(parts: RecorderParts) {
    this.#parts = parts;
    this.#often = new Often(parts.system, (event) => this.note(event));
  }

  get isOn(): boolean {
    return this.#isOn;
  }

  /** Begins or ends recording. */
  setRecording(isOn: boolean): void {
    if (this.#isOn === isOn) return;
    this.#isOn = isOn;
    this.#onTurned(isOn);
  }

  /** Calls back whenever recording begins or ends. */
  onTurned(listener: (isOn: boolean) => void): void {
    this.#onTurned = listener;
  }

  /**
   * What a decision tells, as effects of its unit: undefined while events are off. `before` are events of the same
   * attempt that no commit has told of yet.
   */
  recorded(
    row: JobRow,
    { events, documents }: { readonly events: readonly LifecycleEvent[]; readonly documents?: JobDocuments },
    at: Instant,
    before?: readonly LifecycleEvent[],
  ): readonly NewEvent[] | undefined {
    if (!this.isOn) return undefined;
    const recorded: NewEvent[] = [];
    if (before) for (const event of before) recorded.push(this.#job(row, event, row.startedAt ?? at));
    for (const event of events) recorded.push(this.#job(row, event, at, documents?.result));
    return recorded;
  }

  #job(row: JobRow, event: LifecycleEvent, at: Instant, result?: string | null): NewEvent {
    const worker = event.name === "job.started" ? workerOf(row) : undefined;
    return jobEvent(this.#sharedFields(event.name, row.type, row.queue, worker), row, event, at, result);
  }

  /** What new jobs of this kind share in what they tell; undefined while events are off. */
  get sharedFieldsOf(): ((name: string, type: string, queue: string) => Json) | undefined {
    return this.isOn ? this.#sharedFieldsOf : undefined;
  }

  /** One function, so that two contexts can be compared by it. */
  readonly #sharedFieldsOf = (name: string, type: string, queue: string): Json =>
    this.#sharedFields(name, type, queue);

  /** A job that was prepared long ago and is added now. */
  enqueued({ records: _old, ...job }: NewJob): NewJob {
    if (!this.isOn) return job;
    const name = job.image.state === "scheduled" ? "job.scheduled" : "job.enqueued";
    const event = this.#sharedFields(name, job.type, job.queue);
    return { ...job, records: { event, of: { job: job.id, at: job.createdAt, attempt: 0 } } };
  }

  progress(row: JobRow, text: string, at: Instant): NewEvent | undefined {
    if (!this.isOn) return undefined;
    const event = this.#sharedFields("job.progress", row.type, row.queue);
    const whole = JSON.parse(text) as { readonly value: number };
    const progress = text.length > LONGEST_PROGRESS ? { value: whole.value } : whole;
    return { event, of: { job: row.id, at, attempt: row.attempt, progress } };
  }

  /** A sign of life of a job that beats for itself: it is written in the beat that moves its `stallAt`. */
  heartbeat(row: JobRow, visibleUntil: Instant, at: Instant): NewEvent | undefined {
    if (!this.isOn) return undefined;
    const event = this.#sharedFields("job.heartbeat", row.type, row.queue);
    return { event, of: { job: row.id, at, attempt: row.attempt, visibleUntil } };
  }

  /** Mostly it is the head of the event before: comparing is cheaper than putting a key together. */
  #sharedFields(name: string, type: string, queue: string, worker?: string): Json {
    const last = this.#lastHeads.get(name);
    if (last && last.type === type && last.queue === queue && last.worker === worker) return last.head;
    const head = this.#knownFields(name, type, queue, worker);
    this.#lastHeads.set(name, { type, queue, worker, head });
    return head;
  }

  #knownFields(name: string, type: string, queue: string, worker: string | undefined): Json {
    const key = worker === undefined ? `${name} ${queue} ${type}` : `${name} ${queue} ${type} ${worker}`;
    const known = this.#heads.get(key);
    if (known) return known;
    if (this.#heads.size >= MOST_HEADS) this.#heads.clear();
    const head = { name, type, queue, ...(worker !== undefined && { worker }) };
    this.#heads.set(key, head);
    return head;
  }

  /** What tells of something else than a job, as effects of the unit that commits it: none while events are off. */
  effects(name: string, happening: Happening): readonly NewEvent[] {
    return this.isOn ? [{ event: { name, ...happening } as unknown as Json }] : NONE;
  }

  /** The same of an event that is put together already. */
  kept(event: StoredEvent): readonly NewEvent[] {
    return this.isOn ? [{ event: event as unknown as Json }] : NONE;
  }

  /** What no commit brings about, such as a handler that is stuck: written within a tenth of a second, as far as it goes. */
  note(event: StoredEvent): void {
    if (!this.isOn || this.#isClosed) return;
    this.#noted.push({ event: event as unknown as Json });
    if (this.#noted.length > MOST_NOTED) this.#noted.splice(0, NOTED_AT_ONCE);
    this.#timer ??= this.#parts.system.after(NOTED_WITHIN, () => {
      this.#timer = undefined;
      void this.flush();
    });
  }

  /** Notes what may happen thousands of times a second, under its key once a second. */
  noteOften(key: string, event: StoredEvent): void {
    if (this.isOn && !this.#isClosed) this.#often.add(key, event);
  }

  /** Writes what is left, and takes no more notes; what is still committed goes on to be told. */
  close(): Promise<void> {
    this.#often.flush();
    this.#isClosed = true;
    this.#timer?.cancel();
    return this.flush();
  }

  /** Writes what was noted; a store that fails is asked again with the next note. */
  flush(): Promise<void> {
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  async #write(): Promise<void> {
    const { commit, storeFailed } = this.#parts;
    while (this.#noted.length > 0) {
      const batch = this.#noted.splice(0, NOTED_AT_ONCE);
      try {
        await commit([{ effects: batch }]);
      } catch (error) {
        storeFailed(error, "events");
        this.#noted = [...batch, ...this.#noted].slice(-MOST_NOTED);
        return;
      }
    }
  }
}
