import { errorText } from "../../core/errors.ts";
import { type StoredEvent, withoutStack } from "../../core/event/stored-event.ts";
import type { Json } from "../../core/schema.ts";
import { JOB_DESTINATION } from "../dispatch/job-destination.ts";
import { isSagaDestination } from "../sagas/saga-addresses.ts";
import type {
  BlockedDetail,
  EngineEventName,
  EngineEvents,
  EventBus,
  JobEventDetail,
  QueueDetail,
  SandboxDetail,
  SchedulingDetail,
  UnreadyDetail,
  WorkerDetail,
} from "./event-bus.ts";
import type { EventRecorder } from "./event-recorder.ts";
import type { SagaEventDetail } from "./saga-events.ts";
import type { TimeoutEventDetail } from "./timeout-events.ts";

type Noting<Name extends EngineEventName> = (
  recorder: Pick<EventRecorder, "note" | "noteThrottled">,
  event: EngineEvents[Name],
) => void;

/**
 * How an event is recorded. `commit`: in the commit of its change. A function: as a note, because it has no commit.
 * `not`: never, for this reason.
 */
type Recorded<Name extends EngineEventName> = "commit" | Noting<Name> | { readonly not: string };

/** The rule of every event, as a record, so that the compiler reports a missing one. */
export const RECORDED: { readonly [Name in EngineEventName]: Recorded<Name> } = {
  "job.enqueued": "commit",
  "job.scheduled": "commit",
  "job.started": "commit",
  "job.completed": "commit",
  "job.timeout": "commit",
  "job.total_timeout": "commit",
  "job.stalled": "commit",
  "job.visibility_timeout": "commit",
  "job.ttl_expired": "commit",
  "job.expired": "commit",
  "job.failed": "commit",
  "job.retrying": "commit",
  "job.discarded": "commit",
  "job.cancelled": "commit",
  "job.released": "commit",
  "job.snoozed": "commit",
  "job.claim_expired": "commit",
  "job.extended": "commit",
  "job.retried": "commit",
  "job.progress": "commit",
  "job.heartbeat": "commit",
  "job.stuck": noteJob,
  "job.unstuck": noteJob,
  "job.lost": noteJob,
  "job.killed": noteJob,
  "job.unknown_type": noteJob,
  "job.cleanup_failed": noteJob,
  "worker.started": noteWorker,
  "worker.quiet": noteWorker,
  "worker.resumed": noteWorker,
  "worker.stopped": "commit",
  "worker.lost": "commit",
  "worker.blocked": noteBlocked,
  "worker.unready": noteReadiness,
  "worker.ready": noteReadiness,
  "sandbox.broken": noteSandbox,
  "sandbox.mended": noteSandbox,
  "store.error": { not: "it would be written to the store that failed; the log has it" },
  "cron.triggered": "commit",
  "cron.skipped": "commit",
  "limit.changed": "commit",
  "queue.paused": "commit",
  "queue.resumed": "commit",
  "queue.pressure": noteQueue,
  "queue.relieved": noteQueue,
  "queue.full": noteQueue,
  "scheduling.queue_starved": noteScheduling,
  "scheduling.pool_overloaded": noteScheduling,
  "scheduling.rebalanced": noteScheduling,
  "saga.started": "commit",
  "saga.handled": "commit",
  "saga.completed": "commit",
  "saga.not_found": "commit",
  "saga.ignored": noteSaga,
  "saga.failed": noteSaga,
  "timeout.sent": noteTimeout,
  "timeout.failed": noteTimeout,
  "timeout.dead": noteTimeout,
  "workflow.started": "commit",
  "workflow.completed": "commit",
  "workflow.failed": "commit",
  "workflow.cancelled": "commit",
};

/** Listens for events to note, only while recording is on: an event without listeners is not built. */
export function recordBusEvents({
  bus,
  recorder,
}: {
  readonly bus: Pick<EventBus, "on">;
  readonly recorder: EventRecorder;
}): void {
  let stops: (() => void)[] = [];
  recorder.onChange((isOn) => {
    for (const stop of stops) stop();
    stops = isOn ? namesOf(RECORDED).flatMap((name) => listenFor(name)) : [];
  });
  function listenFor<Name extends EngineEventName>(name: Name): (() => void)[] {
    const noting: Recorded<Name> = RECORDED[name];
    return typeof noting === "function" ? [bus.on(name, (event) => noting(recorder, event))] : [];
  }
}

function namesOf(table: typeof RECORDED): EngineEventName[] {
  return Object.keys(table) as EngineEventName[];
}

type Notes = Pick<EventRecorder, "note">;

function noteJob(notes: Notes, event: JobEventDetail): void {
  const { name, id, type, queue, attempt, at, elapsed, error, where } = event;
  notes.note({
    name,
    at,
    job: id,
    type,
    queue,
    attempt,
    ...(elapsed !== undefined && { elapsed }),
    ...(error && { error: withoutStack(error) }),
    ...(where !== undefined && { data: { where } }),
  });
}

function noteWorker(notes: Notes, event: WorkerDetail): void {
  notes.note(workerEvent(event));
}

/** The recorded event of a worker. */
export function workerEvent({ name, at, worker, remote, queues, reason, seenAt }: WorkerDetail): StoredEvent {
  return {
    name,
    at,
    subject: worker,
    data: {
      worker,
      ...(remote && { remote }),
      ...(queues && { queues }),
      ...(reason !== undefined && { reason }),
      ...(seenAt !== undefined && { seenAt }),
    },
  };
}

/** A worker may run thousands of jobs; the log names all of them. */
const MOST_NAMED = 100;

function noteBlocked(notes: Notes, { name, at, worker, gap, jobs }: BlockedDetail): void {
  const data = { worker, gap, jobs: jobs.slice(0, MOST_NAMED) as unknown as Json };
  notes.note({ name, at, subject: worker, data });
}

function noteReadiness(notes: Notes, { name, at, worker, reason }: UnreadyDetail): void {
  notes.note({ name, at, subject: worker, data: { worker, reason } });
}

function noteSandbox(notes: Notes, { name, at, worker, type, reason }: SandboxDetail): void {
  notes.note({ name, at, subject: worker, data: { worker, type, reason } });
}

/**
 * Throttled, because many jobs may be refused. Pressure and relief share a key, so that the last recorded event shows
 * the queue's state.
 */
function noteQueue(
  notes: Pick<EventRecorder, "noteThrottled">,
  { name, at, queue, waiting, most }: QueueDetail,
): void {
  const data = { ...(waiting !== undefined && { waiting }), ...(most !== undefined && { most }) };
  const about = name === "queue.full" ? "full" : "pressure";
  notes.noteThrottled(`${about} ${queue}`, { name, at, subject: queue, queue, data });
}

/** Throttled, because a pool may be full and free again with every job. */
function noteScheduling(
  notes: Pick<EventRecorder, "noteThrottled">,
  { name, at, pool, queue, data }: SchedulingDetail,
): void {
  const about = { subject: queue ?? pool, ...(queue !== undefined && { queue }), data: { pool, ...data } };
  notes.noteThrottled(`${name} ${pool} ${queue ?? ""}`, { name, at, ...about });
}

function noteSaga(notes: Notes, { name, at, type, saga, event, because, error }: SagaEventDetail): void {
  notes.note({
    name,
    at,
    subject: saga,
    data: {
      ...sagaData(type, saga, event),
      ...(because && { because: because as unknown as Json }),
      ...(error !== undefined && { error: errorText(error, MESSAGE_LIMIT) }),
    },
  });
}

/** The fields that all events of a saga share. */
export function sagaData(type: string, saga: string, { kind, name, id }: SagaEventDetail["event"]) {
  return { saga, type, event: { kind, name, id } };
}

/** A timeout of a saga or job is recorded by the commit of its step or enqueue. */
function noteTimeout(notes: Notes, event: TimeoutEventDetail): void {
  const { name, at, timeout, destination, tries, error } = event;
  if (name === "timeout.sent" && (destination === JOB_DESTINATION || isSagaDestination(destination))) return;
  notes.note({
    name,
    at,
    subject: timeout,
    data: {
      timeout,
      destination,
      tries,
      ...(error !== undefined && { error: errorText(error, MESSAGE_LIMIT) }),
    },
  });
}

const MESSAGE_LIMIT = 500;
