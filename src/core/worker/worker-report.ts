import type { JobId, JobRow, PolicySettings } from "../job/job.ts";
import { takesVersion } from "../registry/job-version.ts";
import type { Json } from "../schema.ts";
import type { Instant } from "../time.ts";

/** A processor as its worker reports it. `source` has the settings of its definition; left out if they are too long. */
export interface ReportedProcessor {
  readonly type: string;
  readonly queue: string;
  readonly settings?: PolicySettings;
  /** The versions that it runs; left out for all. */
  readonly versions?: readonly string[] | undefined;
}

/** The sandboxes of one job type. */
export interface ReportedSandbox {
  /** The most sandboxes at once. */
  readonly size: number;
  readonly busy: number;
  readonly loading: number;
  /** Claimed jobs that wait for a sandbox. */
  readonly waiting: number;
  /** Why jobs are released instead of run; null while they are run. */
  readonly problem: string | null;
}

/** A handler that still runs after its verdict. It is fenced off, and nothing that it does counts. */
export interface ReportedStuck {
  readonly job: JobId;
  readonly since: Instant;
}

/** What a worker reports with each beat. Null: not reported, as by a foreign worker over HTTP. */
export interface WorkerReport {
  readonly id: string;
  readonly isRemote: boolean;
  readonly seenAt: Instant;
  /** It takes no more jobs: it shuts down, or an operator asked it to. */
  readonly isStopping: boolean;
  readonly running: number;
  readonly queues: readonly string[] | null;
  /** Attempts that run and may run at once, by queue. */
  readonly slots: { readonly [queue: string]: readonly [running: number, concurrency: number] } | null;
  readonly processors: readonly ReportedProcessor[] | null;
  /** Why it is not ready. */
  readonly problem: string | null;
  /** What keeps it from claiming: too many stuck handlers, or a store that refuses its claims. */
  readonly halted: "stuck" | "failing" | null;
  /** The last standstill of its event loop: when it ended, and how many milliseconds it took. */
  readonly blocked: { readonly at: Instant; readonly gap: number } | null;
  readonly stuck: readonly ReportedStuck[];
  readonly sandboxes: { readonly [type: string]: ReportedSandbox };
}

/** The most processors in a report: it is written with every beat. */
export const MOST_PROCESSORS = 200;
/** Settings with more characters in total are left out of the report. */
const MOST_RUNG_TEXT = 8_000;
export const MOST_STUCK = 20;

const REMOTE = "remote:";

/** Remote workers choose their names, so their records live under a prefix and never meet those of an engine's workers. */
export function remoteRecordId(id: string): string {
  return `${REMOTE}${id}`;
}

/** The name of the worker of a record, and whether it works over HTTP. */
export function workerOfRecord(recordId: string): { readonly id: string; readonly isRemote: boolean } {
  const isRemote = recordId.startsWith(REMOTE);
  return { id: isRemote ? recordId.slice(REMOTE.length) : recordId, isRemote };
}

const STOPPED: ReadonlySet<string> = new Set(["quiet", "drain", "draining", "terminate", "shutting_down"]);

/** Whether a worker in this state gets no more jobs. */
export function isStoppedState(state: string): boolean {
  return STOPPED.has(state);
}

/** The processors of a worker for its report; undefined if there are too many. */
export function reportedProcessors(processors: readonly ReportedProcessor[]): Json | undefined {
  if (processors.length > MOST_PROCESSORS) return undefined;
  const full = processors.map(({ type, queue, settings, versions }): Json => {
    const said = settings && Object.keys(settings).length > 0 ? (settings as unknown as Json) : undefined;
    if (versions) return [type, queue, said ?? {}, versions];
    return said === undefined ? [type, queue] : [type, queue, said];
  });
  if (JSON.stringify(full).length <= MOST_RUNG_TEXT) return full;
  return processors.map(({ type, queue, versions }) => [type, queue, null, ...(versions ? [versions] : [])]);
}

/** Reads the record of a worker. Bodies of other versions have fewer fields; a missing one is null. */
export function readWorker(recordId: string, body: Json, isDirected: boolean): WorkerReport {
  const said = body as { readonly [name: string]: Json };
  const about = (said.about ?? {}) as { readonly [name: string]: Json };
  const state = typeof said.state === "string" ? said.state : "running";
  const types = about.job_types as readonly string[] | undefined;
  const processors = said.processors as
    | readonly [string, string, (Json | null)?, (readonly string[])?][]
    | undefined;
  return {
    ...workerOfRecord(recordId),
    seenAt: said.seenAt as number,
    isStopping: isDirected || isStoppedState(state),
    running: (said.running as number | undefined) ?? 0,
    queues: ((said.queues ?? about.queues) as readonly string[] | undefined) ?? null,
    slots: (said.slots as WorkerReport["slots"] | undefined) ?? null,
    processors:
      processors?.map(readProcessor) ??
      types?.map((type): ReportedProcessor => ({ type, queue: "" })) ??
      null,
    problem: ((said.problem ?? about.problem) as string | undefined) ?? null,
    halted: (said.halted as WorkerReport["halted"] | undefined) ?? null,
    blocked: (said.blocked as unknown as WorkerReport["blocked"] | undefined) ?? null,
    stuck: (said.stuck as unknown as readonly ReportedStuck[] | undefined) ?? [],
    sandboxes: (said.sandboxes as unknown as WorkerReport["sandboxes"] | undefined) ?? {},
  };
}

/** A null source was left out. A missing source has no settings. */
function readProcessor([type, queue, settings = {}, versions]: readonly [
  string,
  string,
  (Json | null)?,
  (readonly string[])?,
]): ReportedProcessor {
  const said = settings !== null && { settings: settings as unknown as PolicySettings };
  return { type, queue, ...said, ...(versions && { versions }) };
}

/** An idle local worker beats every 5 s. A worker over HTTP may beat less often. */
const SILENT_AFTER = { own: 15_000, remote: 30_000 } as const;

/** Whether a worker has been silent for longer than a living one would be. */
export function isSilent({ seenAt, isRemote }: WorkerReport, now: Instant): boolean {
  return now - seenAt > (isRemote ? SILENT_AFTER.remote : SILENT_AFTER.own);
}

/** Whether a worker takes jobs of a queue. A worker that does not name its queues counts for all. */
export function takesQueue({ queues }: WorkerReport, queue: string): boolean {
  return queues === null || queues.includes(queue);
}

export function hasProcessor(
  { processors }: WorkerReport,
  { type, options }: Pick<JobRow, "type" | "options">,
): boolean {
  return (
    processors === null ||
    processors.some((processor) => processor.type === type && takesVersion(processor.versions, { options }))
  );
}
