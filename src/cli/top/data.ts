import type { Fields, Target } from "../target/target.ts";

/** What the screen shows: the answers of the server, as they came. */
export interface TopData {
  readonly at: number;
  readonly queues: readonly Fields[];
  readonly workers: readonly Fields[];
  /** Jobs that run now; each has `deadline_at`, or null if no timeout ends it. */
  readonly running: readonly Fields[];
  /** The newest discarded jobs. */
  readonly failed: readonly Fields[];
  readonly stats: Fields;
}

const MOST_JOBS = 200;
const MOST_FAILED = 50;
/** Totals of jobs are asked once per attempt, for at most this many jobs in a round: each is a request. */
const TOTALS_AT_ONCE = 20;
const MOST_TOTALS = 1_000;

/** Reads what the screen shows. It remembers when the total timeouts of running jobs end, which lists do not say. */
export class TopReader {
  readonly #target: Target;
  readonly #totals = new Map<string, number | null>();

  constructor(target: Target) {
    this.#target = target;
  }

  async read(): Promise<TopData> {
    const target = this.#target;
    const [queues, attention, workers, running, failed, stats] = await Promise.all([
      target.get("/ojs/v1/admin/queues", { per_page: 200 }),
      target.get("/ojs/v1/admin/unattended-queues"),
      target.get("/ojs/v1/admin/workers", { per_page: 200 }),
      target.get("/ojs/v1/admin/jobs", { state: "active", per_page: MOST_JOBS, order: "asc" }),
      target.get("/ojs/v1/admin/jobs", { state: "discarded", per_page: MOST_FAILED }),
      target.get("/ojs/v1/admin/stats"),
    ]);
    const unattended = new Set((attention.queues as readonly Fields[]).map(({ queue }) => queue));
    const waits = new Map(
      (stats.oldest_waits as readonly Fields[]).map(({ queue, wait_ms }) => [queue, wait_ms]),
    );
    const jobs = running.items as readonly Fields[];
    await this.#readTotals(jobs);
    return {
      at: target.now(),
      queues: (queues.items as readonly Fields[]).map((queue) => ({
        ...queue,
        unattended: unattended.has(queue.name),
        oldest_wait_ms: waits.get(queue.name) ?? null,
      })),
      workers: workers.items as readonly Fields[],
      running: jobs.map((job) => ({ ...job, deadline_at: this.#deadlineOf(job) })),
      failed: failed.items as readonly Fields[],
      stats,
    };
  }

  async #readTotals(jobs: readonly Fields[]): Promise<void> {
    if (this.#totals.size > MOST_TOTALS) this.#totals.clear();
    const unknown = jobs
      .filter((job) => job.total_timeout_ms !== undefined && !this.#totals.has(keyOf(job)))
      .slice(0, TOTALS_AT_ONCE);
    await Promise.all(
      unknown.map(async (job) => {
        const path = `/ojs/v1/admin/jobs/${encodeURIComponent(String(job.id))}`;
        // A job that is gone meanwhile needs no deadline.
        const { total_at } = await this.#target.get(path).catch((): Fields => ({ total_at: null }));
        this.#totals.set(keyOf(job), typeof total_at === "string" ? Date.parse(total_at) : null);
      }),
    );
  }

  /** When the signal comes: at the end of the attempt's timeout, or of the total one if that is earlier. */
  #deadlineOf(job: Fields): string | null {
    const { started_at, timeout_ms } = job;
    const attempt =
      typeof started_at === "string" && typeof timeout_ms === "number"
        ? Date.parse(started_at) + timeout_ms
        : Number.POSITIVE_INFINITY;
    const at = Math.min(attempt, this.#totals.get(keyOf(job)) ?? Number.POSITIVE_INFINITY);
    return Number.isFinite(at) ? new Date(at).toISOString() : null;
  }
}

function keyOf({ id, attempt }: Fields): string {
  return `${id} ${attempt}`;
}
