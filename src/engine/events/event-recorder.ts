import type { NewEvent } from "../../core/event/new-event.ts";
import { jobEvent, type StoredEvent, workerOf } from "../../core/event/stored-event.ts";
import type { LifecycleEvent } from "../../core/job/decide/decision.ts";
import { visibleText } from "../../core/job/documents/redaction.ts";
import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import { isInternalQueue } from "../../core/job/internal-queue.ts";
import type { JobDocuments, JobRow } from "../../core/job/job.ts";
import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import type { Unit } from "../../ports/store.ts";
import type { System, Timer } from "../../ports/system.ts";
import { EventThrottle } from "./event-throttle.ts";
import { deliveryEvents } from "./webhook-events.ts";

/** Fields of an event that is not about a job. */
export interface Happening {
  readonly at: Instant;
  /** What the event is about: the name of a queue, the id of a workflow or worker … */
  readonly subject?: string;
  readonly queue?: string;
  readonly data?: { readonly [key: string]: Json };
}

interface RecorderDeps {
  readonly commit: (units: readonly Unit[]) => Promise<unknown>;
  readonly system: Pick<System, "after">;
  storeFailed(error: unknown, during: string): void;
}

const NONE: readonly NewEvent[] = [];
/** Characters. An event has no larger note: thousands of events are read at once, and the job itself has it. */
const LONGEST_PROGRESS = 16_000;
const NOTED_WITHIN = 100;
const NOTED_AT_ONCE = 500;
/** While the store fails, at most this many notes wait; the oldest are dropped. */
const MOST_NOTED = 10_000;
const MOST_KNOWN = 2_000;

/** Makes events for the commit of their change. While recording is off, it makes none and costs nothing. */
export class EventRecorder {
  #isOn = false;
  readonly #deps: RecorderDeps;
  readonly #throttle: EventThrottle;
  #onChange: (isOn: boolean) => void = () => {};
  /** One object per combination: a store writes it once for all events of a commit that share it. */
  readonly #known = new Map<string, Json>();
  /** The last shared fields of each name. */
  readonly #last = new Map<
    string,
    {
      readonly type: string;
      readonly queue: string;
      readonly worker: string | undefined;
      readonly fields: Json;
    }
  >();
  /** Not in a `Batcher`: a timer sends them, and the oldest are dropped while the store is down. */
  #noted: NewEvent[] = [];
  #timer: Timer | undefined;
  #isClosed = false;
  #writing: Promise<void> | undefined;

  constructor(deps: RecorderDeps) {
    this.#deps = deps;
    this.#throttle = new EventThrottle(deps.system, (event) => this.note(event));
  }

  get isOn(): boolean {
    return this.#isOn;
  }

  setRecording(isOn: boolean): void {
    if (this.#isOn === isOn) return;
    this.#isOn = isOn;
    this.#onChange(isOn);
  }

  /** Calls back when recording is turned on or off. */
  onChange(listener: (isOn: boolean) => void): void {
    this.#onChange = listener;
  }

  /**
   * The events of a decision, for its unit; undefined while recording is off. `before` are events of the same attempt
   * that no commit has recorded yet.
   */
  recorded(
    row: JobRow,
    { events, documents }: { readonly events: readonly LifecycleEvent[]; readonly documents?: JobDocuments },
    at: Instant,
    before?: readonly LifecycleEvent[],
  ): readonly NewEvent[] | undefined {
    if (!this.isOn) return undefined;
    if (isInternalQueue(row.queue)) return deliveryEvents(row, events, at);
    const recorded: NewEvent[] = [];
    if (before) for (const event of before) recorded.push(this.#job(row, event, row.startedAt ?? at));
    for (const event of events)
      recorded.push(this.#job(row, event, at, visibleResult(row, documents?.result)));
    return recorded;
  }

  #job(row: JobRow, event: LifecycleEvent, at: Instant, result?: string | null): NewEvent {
    const worker = event.name === "job.started" ? workerOf(row) : undefined;
    return jobEvent(this.#sharedFields(event.name, row.type, row.queue, worker), row, event, at, result);
  }

  /** Returns the fields that events of this kind share; undefined while recording is off. */
  get sharedFieldsOf(): ((name: string, type: string, queue: string) => Json) | undefined {
    return this.isOn ? this.#sharedFieldsOf : undefined;
  }

  /** One function object, so that contexts can be compared by it. */
  readonly #sharedFieldsOf = (name: string, type: string, queue: string): Json =>
    this.#sharedFields(name, type, queue);

  /** Records the enqueue of a job that was prepared earlier. */
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

  /** The heartbeat of a job, written in the commit that moves its `stallAt`. */
  heartbeat(row: JobRow, visibleUntil: Instant, at: Instant): NewEvent | undefined {
    if (!this.isOn) return undefined;
    const event = this.#sharedFields("job.heartbeat", row.type, row.queue);
    return { event, of: { job: row.id, at, attempt: row.attempt, visibleUntil } };
  }

  /** Usually the same as for the event before: comparing is cheaper than building a key. */
  #sharedFields(name: string, type: string, queue: string, worker?: string): Json {
    const last = this.#last.get(name);
    if (last && last.type === type && last.queue === queue && last.worker === worker) return last.fields;
    const fields = this.#knownFields(name, type, queue, worker);
    this.#last.set(name, { type, queue, worker, fields });
    return fields;
  }

  #knownFields(name: string, type: string, queue: string, worker: string | undefined): Json {
    const key = worker === undefined ? `${name} ${queue} ${type}` : `${name} ${queue} ${type} ${worker}`;
    const known = this.#known.get(key);
    if (known) return known;
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    const fields = { name, type, queue, ...(worker !== undefined && { worker }) };
    this.#known.set(key, fields);
    return fields;
  }

  /** An event that is not about a job, for the unit of its change; none while recording is off. */
  effects(name: string, happening: Happening): readonly NewEvent[] {
    return this.isOn ? [{ event: { name, ...happening } as unknown as Json }] : NONE;
  }

  /** The same for a complete event. */
  kept(event: StoredEvent): readonly NewEvent[] {
    return this.isOn ? [{ event: event as unknown as Json }] : NONE;
  }

  /**
   * Records an event that has no commit, such as a stuck handler, within 100 ms. While the store is down, keeps the
   * newest 10,000.
   */
  note(event: StoredEvent): void {
    if (!this.isOn || this.#isClosed || (event.queue !== undefined && isInternalQueue(event.queue))) return;
    this.#noted.push({ event: event as unknown as Json });
    if (this.#noted.length > MOST_NOTED) this.#noted.splice(0, NOTED_AT_ONCE);
    this.#timer ??= this.#deps.system.after(NOTED_WITHIN, () => {
      this.#timer = undefined;
      void this.flush();
    });
  }

  /** Records an event that may happen thousands of times a second: at most once a second per key. */
  noteThrottled(key: string, event: StoredEvent): void {
    if (this.isOn && !this.#isClosed) this.#throttle.add(key, event);
  }

  /** Writes the waiting notes and accepts no more. Events of later commits are still recorded. */
  close(): Promise<void> {
    this.#throttle.flush();
    this.#isClosed = true;
    this.#timer?.cancel();
    return this.flush();
  }

  /** Writes the waiting notes. After a store failure the next note retries them. */
  flush(): Promise<void> {
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  async #write(): Promise<void> {
    const { commit, storeFailed } = this.#deps;
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

/** Events are for people too. */
function visibleResult({ options }: JobRow, result: string | null | undefined): string | null | undefined {
  return options?.redact && result ? visibleText(result, options.redact, "result") : result;
}
