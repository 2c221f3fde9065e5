import { eventId } from "../core/event/event-id.ts";
import { fitsFilter, type JournalEvent } from "../core/event/journal-event.ts";
import type { StoredEvent } from "../core/event/stored-event.ts";
import type { JobState } from "../core/job/job.ts";
import { type CloudEvent, toCloudEvent } from "./cloud-event.ts";

/** An event on the wire: the envelope, and beside it what some clients look for outside of the data. */
interface WireEvent extends CloudEvent {
  readonly timestamp: string;
  readonly job_id?: string;
  readonly queue?: string;
}

/** What the specification of backpressure calls otherwise; each is sent under both names. */
const ALIASES: Readonly<Record<string, string>> = {
  "queue.full": "backpressure.rejected",
  "queue.pressure": "backpressure.warning",
  "queue.relieved": "backpressure.cleared",
  "job.discarded": "backpressure.dropped",
};

function aliasOf({ name, error }: StoredEvent): string | undefined {
  // Of all jobs that are discarded, only those that made room for others.
  return name === "job.discarded" && error?.code !== "queue_full" ? undefined : ALIASES[name];
}

/** Told besides the events that it is made of, but only to readers that name it: all others would see each change twice. */
const STATE_CHANGED = "job.state_changed";

/** The state of the job after an event, where the event alone says it. */
const STATES: Readonly<Record<string, JobState>> = {
  "job.enqueued": "available",
  "job.scheduled": "scheduled",
  "job.started": "active",
  "job.completed": "completed",
  "job.retrying": "retryable",
  "job.discarded": "discarded",
  "job.cancelled": "cancelled",
  "job.snoozed": "scheduled",
  "job.retried": "available",
  "job.claim_expired": "available",
};

/** The state before an event, where there is only one. */
const STATES_BEFORE: Readonly<Record<string, JobState>> = {
  "job.started": "available",
  "job.completed": "active",
  "job.retrying": "active",
};

export function stateAfter(name: string): JobState | undefined {
  return STATES[name];
}

/** The types to look for in the journal, where some may have been asked for by their other name. */
export function readTypes(types: readonly string[] | undefined): readonly string[] | undefined {
  if (!types) return types;
  const hasChanges = types.includes(STATE_CHANGED);
  if (!hasChanges && !types.some((type) => type.startsWith("backpressure."))) return types;
  const names = Object.entries(ALIASES).flatMap(([name, alias]) =>
    fitsFilter({ name: alias, at: 0 }, { types }) ? [name] : [],
  );
  return [...new Set([...types, ...names, ...(hasChanges ? Object.keys(STATES) : [])])];
}

/** An event under each of its names that was asked for; under all of them, if nothing was said. */
export function wireEvents(event: JournalEvent, types?: readonly string[]): WireEvent[] {
  const { job, queue } = event;
  const alias = aliasOf(event);
  const fields = toCloudEvent(event);
  const more = {
    timestamp: fields.time,
    ...(job !== undefined && { job_id: job }),
    ...(queue !== undefined && { queue }),
  };
  const all: WireEvent[] = [{ ...fields, ...more }];
  if (alias !== undefined)
    all.push({ ...fields, ...more, ...aliased(event, alias), data: dataOf(event, fields) });
  if (!types) return all;
  const to = stateAfter(event.name);
  if (to !== undefined && types.includes(STATE_CHANGED))
    all.push({ ...fields, ...more, ...aliased(event, STATE_CHANGED), data: changeOf(event, to) });
  return all.filter(({ type }) => fitsFilter({ ...event, name: type }, { types }));
}

function changeOf({ name, job, type, queue, attempt }: JournalEvent, to: JobState): CloudEvent["data"] {
  return {
    job_id: job,
    job_type: type,
    queue,
    attempt,
    from: STATES_BEFORE[name] ?? null,
    to,
    state: to,
    event: name,
  };
}

function aliased({ at, cursor }: JournalEvent, type: string): Pick<CloudEvent, "id" | "type"> {
  return { id: eventId(at, `${type} ${cursor}`), type };
}

/** Depth and bound in the words of that specification. */
function dataOf({ name, data }: JournalEvent, fields: CloudEvent): CloudEvent["data"] {
  if (name === "job.discarded") return fields.data;
  return { ...fields.data, depth: data?.waiting ?? null, bound: data?.most ?? null };
}
