import { eventId } from "../core/event/event-id.ts";
import { fitsFilter, type JournalEvent } from "../core/event/journal-event.ts";
import type { StoredEvent } from "../core/event/stored-event.ts";
import { type CloudEvent, toCloudEvent } from "./cloud-event.ts";

/** An event on the wire: the envelope, and beside it what some clients look for outside of the data. */
interface WireEvent extends CloudEvent {
  readonly timestamp: string;
  readonly job_id?: string;
  readonly queue?: string;
}

/** What the specification of backpressure calls otherwise; each is told under both names. */
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

/** The types to look for in the journal, where some may have been asked for by their other name. */
export function readTypes(types: readonly string[] | undefined): readonly string[] | undefined {
  if (!types?.some((type) => type.startsWith("backpressure."))) return types;
  const names = Object.entries(ALIASES).flatMap(([name, alias]) =>
    fitsFilter({ name: alias, at: 0 }, { types }) ? [name] : [],
  );
  return [...new Set([...types, ...names])];
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
  return types ? all.filter(({ type }) => fitsFilter({ ...event, name: type }, { types })) : all;
}

function aliased({ at, cursor }: JournalEvent, type: string): Pick<CloudEvent, "id" | "type"> {
  return { id: eventId(at, `${type} ${cursor}`), type };
}

/** Depth and bound in the words of that specification. */
function dataOf({ name, data }: JournalEvent, fields: CloudEvent): CloudEvent["data"] {
  if (name === "job.discarded") return fields.data;
  return { ...fields.data, depth: data?.waiting ?? null, bound: data?.most ?? null };
}
