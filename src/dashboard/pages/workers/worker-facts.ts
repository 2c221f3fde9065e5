import type { Job, WireEvent, Worker } from "../../../ojs/replies/wire-replies.ts";

/** What the events of the last hours say about one worker. */
export interface WorkerFacts {
  /** How often its event loop stood still, and for how long at most, in milliseconds. */
  readonly blocks: number;
  readonly longest: number;
  /** Sandboxed runs that were killed, and handlers that ran on past the verdict. */
  readonly kills: number;
  readonly stuck: number;
}

export interface Holding {
  /** The jobs that each worker runs, by its name. */
  readonly jobs: ReadonlyMap<string, readonly Job[]>;
  /** Jobs that run and whose worker is silent or not known any more. */
  readonly orphans: readonly { readonly job: Job; readonly worker: string }[];
  /** Jobs that run and of which the events say nothing. */
  readonly unknown: readonly Job[];
}

const text = (value: unknown) => (typeof value === "string" ? value : "");

/** Who started a job last, by the id of the job. */
function startersOf(events: readonly WireEvent[]): Map<string, string> {
  const starters = new Map<string, string>();
  for (const { type, subject, data } of events)
    if (type === "job.started" && subject !== undefined && data.worker_id !== undefined)
      starters.set(subject, text(data.worker_id));
  return starters;
}

export function holdingOf(
  active: readonly Job[],
  workers: readonly Worker[],
  events: readonly WireEvent[],
): Holding {
  const starters = startersOf(events);
  const states = new Map(workers.map(({ id, state }) => [id, state]));
  const jobs = new Map<string, Job[]>();
  const orphans: { job: Job; worker: string }[] = [];
  const unknown: Job[] = [];
  for (const job of active) {
    const worker = starters.get(job.id);
    if (worker === undefined) {
      unknown.push(job);
      continue;
    }
    jobs.set(worker, [...(jobs.get(worker) ?? []), job]);
    const state = states.get(worker);
    if (state === undefined || state === "stale") orphans.push({ job, worker });
  }
  return { jobs, orphans, unknown };
}

export function factsOf(worker: string, events: readonly WireEvent[]): WorkerFacts {
  const starters = startersOf(events);
  const facts = { blocks: 0, longest: 0, kills: 0, stuck: 0 };
  for (const { type, subject, data } of events) {
    const own = text(data.worker_id) || starters.get(subject ?? "") || "";
    if (own !== worker) continue;
    if (type === "worker.blocked") {
      facts.blocks += 1;
      facts.longest = Math.max(facts.longest, Number(data.gap_ms) || 0);
    }
    if (type === "job.killed") facts.kills += 1;
    if (type === "job.stuck") facts.stuck += 1;
  }
  return facts;
}
