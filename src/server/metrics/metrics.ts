import { JOB_STATES, type JobRow } from "../../core/job/job.ts";
import { OTHER } from "../../core/stats/series.ts";
import type { Engine } from "../../engine/engine.ts";
import { type CounterSnapshot, LATENESS_BOUNDS } from "../../engine/statistics/counters.ts";
import { Histogram } from "../../engine/statistics/lateness-histogram.ts";
import { RUN_BOUNDS, type Tally, WAIT_BOUNDS } from "../../engine/statistics/tallies.ts";
import { CALL_BOUNDS, type WebhookCounts } from "../../engine/webhooks/webhook-counters.ts";
import type { System } from "../../ports/system.ts";
import { Exposition } from "./exposition.ts";

/** Counts the requests of one route without a look-up. */
export interface RouteMeter {
  count(status: number, elapsed: number): void;
}

export interface Metrics {
  route(method: string, path: string): RouteMeter;
  text(): Promise<string>;
}

const REQUEST_BOUNDS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000] as const;

class Meter implements RouteMeter {
  readonly method: string;
  readonly path: string;
  readonly statuses = new Map<number, number>();
  readonly took = new Histogram(REQUEST_BOUNDS);

  constructor(method: string, path: string) {
    this.method = method;
    this.path = path;
  }

  count(status: number, elapsed: number): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    this.took.add(elapsed);
  }
}

/** The counters of this server. Names are those of Open Job Spec where it has one. */
export function createMetrics(engine: Engine, system: Pick<System, "monotonic">): Metrics {
  const meters: Meter[] = [];
  const gauges = new Gauges(engine, system);
  return {
    route(method, path) {
      const meter = new Meter(method, path);
      meters.push(meter);
      return meter;
    },
    async text() {
      const counters = engine.counters();
      const page = new Exposition();
      writeJobs(page, counters.tallies);
      writeTimeouts(page, counters);
      writeUnattended(page, counters);
      writeWebhooks(page, engine.webhooks.counts());
      await gauges.write(page, counters.tallies);
      writeTenants(page, engine);
      writeRequests(page, meters);
      return page.text();
    },
  };
}

function writeJobs(page: Exposition, tallies: readonly Tally[]): void {
  const of = (tally: Tally) => ({ queue: tally.queue, type: tally.type });
  const counts = (pick: (tally: Tally) => number) =>
    tallies.map((tally) => [of(tally), pick(tally)] as const);
  page
    .counter(
      "ojs_job_enqueued_total",
      "Jobs enqueued.",
      counts((tally) => tally.enqueued),
    )
    .counter(
      "ojs_job_completed_total",
      "Jobs completed.",
      counts((tally) => tally.completed),
    )
    .counter(
      "ojs_job_failed_total",
      "Jobs discarded.",
      counts((tally) => tally.discarded),
    )
    .counter(
      "ojs_job_retried_total",
      "Attempts that failed and will be retried.",
      counts((t) => t.retrying),
    )
    .counter(
      "ojs_job_cancelled_total",
      "Jobs cancelled.",
      counts((tally) => tally.cancelled),
    )
    .counter(
      "ojs_job_expired_total",
      "Jobs not started in time.",
      counts((tally) => tally.expired),
    )
    .counter(
      "curfew_near_misses_total",
      "Successes in time that used more than 80 % of a limit.",
      counts((tally) => tally.nearMisses),
    )
    .counter(
      "ojs_dead_letter_added_total",
      "Jobs kept as dead letters.",
      counts((tally) => tally.deadLettered),
    )
    .histogram(
      "ojs_job_queue_time_seconds",
      "From the moment a job was due to the start of its attempt.",
      WAIT_BOUNDS,
      tallies.map((tally) => [of(tally), tally.wait] as const),
    )
    .histogram(
      "ojs_job_duration_seconds",
      "From the start of an attempt to its verdict, by the state of the job afterwards.",
      RUN_BOUNDS,
      tallies.flatMap((tally) =>
        Object.entries(tally.run).map(([state, run]) => [{ ...of(tally), state }, run] as const),
      ),
    );
}

function writeWebhooks(page: Exposition, counts: WebhookCounts | null): void {
  if (!counts) return;
  page
    .counter(
      "ojs_webhook_delivery_total",
      "Calls of webhooks: delivered, failed with retries left, or dead.",
      counts.calls.map(
        ({ event, outcome, count }) => [{ event_type: event, status: outcome }, count] as const,
      ),
    )
    .histogram("ojs_webhook_delivery_duration_seconds", "How long calls of webhooks took.", CALL_BOUNDS, [
      [{}, counts.durations],
    ])
    .counter("curfew_webhook_postponed_total", "Deliveries put off by an open circuit or Retry-After.", [
      [{}, counts.postponed],
    ])
    .gauge("ojs_webhook_subscriptions", "Active subscriptions.", [[{}, counts.subscriptions]]);
}

function writeUnattended(page: Exposition, { unattended }: CounterSnapshot): void {
  page.counter(
    "curfew_enqueued_unattended_total",
    "Jobs enqueued into a queue without a live worker.",
    unattended.map(({ queue, count }) => [{ queue }, count] as const),
  );
}

/** Stats of this process that have no type or queue. */
const PLAIN = [
  ["started", "Attempts started."],
  ["failed", "Attempts that failed."],
  ["released", "Attempts given back unspent."],
  ["late", "Successes after the soft signal."],
  ["stuck", "Handlers that ran past their hard deadline and were fenced off."],
  ["lost", "Writes refused because another fence holds."],
  ["unknown", "Writes without an answer from the store."],
  ["ignored", "Hints and directives about jobs that are no longer held here."],
] as const satisfies readonly (readonly [keyof CounterSnapshot, string])[];

function writeTimeouts(page: Exposition, counters: CounterSnapshot): void {
  page
    .counter(
      "ojs_job_timeout_count_total",
      "Timeouts by kind and mode.",
      counters.timeouts.map(
        ({ kind, mode, queue, type, count }) =>
          [{ timeout_kind: kind, mode, queue, job_type: type }, count] as const,
      ),
    )
    .histogram("curfew_fire_lateness_seconds", "How late deadlines fired.", LATENESS_BOUNDS, [
      [{}, counters.lateness],
    ]);
  for (const [name, help] of PLAIN) page.counter(`curfew_${name}_total`, help, [[{}, counters[name]]]);
}

function writeRequests(page: Exposition, meters: readonly Meter[]): void {
  const used = meters.filter(({ statuses }) => statuses.size > 0);
  page
    .counter(
      "curfew_http_requests_total",
      "Requests by route and status.",
      used.flatMap(({ method, path: route, statuses }) =>
        [...statuses].map(([status, count]) => [{ method, route, status: String(status) }, count] as const),
      ),
    )
    .histogram(
      "curfew_http_request_duration_seconds",
      "From the arrival of a request to its reply.",
      REQUEST_BOUNDS,
      used.map(({ method, path: route, took }) => [{ method, route }, took.snapshot()] as const),
    );
}

/** The most tenants that have stats of their own. The others share the name `_other`. */
const MOST_TENANTS = 1_000;
const OTHER_TENANTS = "_other";

/** Stats of the tenants that this process works for. */
function writeTenants(page: Exposition, engine: Engine): void {
  const opened = [...engine.tenants.opened];
  if (opened.length === 0) return;
  const totals = new Map<string, { enqueued: number; completed: number; discarded: number }>();
  for (const [name, own] of opened) {
    const label = totals.size < MOST_TENANTS ? name : OTHER_TENANTS;
    const total = totals.get(label) ?? { enqueued: 0, completed: 0, discarded: 0 };
    const { enqueued, completed, discarded } = own.counters();
    total.enqueued += enqueued;
    total.completed += completed;
    total.discarded += discarded;
    totals.set(label, total);
  }
  const of = (pick: (total: { enqueued: number; completed: number; discarded: number }) => number) =>
    [...totals].map(([tenant_id, total]) => [{ tenant_id }, pick(total)] as const);
  page
    .counter(
      "ojs_tenant_jobs_enqueued_total",
      "Jobs enqueued, by tenant.",
      of(({ enqueued }) => enqueued),
    )
    .counter(
      "ojs_tenant_jobs_processed_total",
      "Jobs completed or discarded, by tenant.",
      of(({ completed, discarded }) => completed + discarded),
    )
    .counter(
      "ojs_tenant_jobs_failed_total",
      "Jobs discarded, by tenant.",
      of(({ discarded }) => discarded),
    );
}

const MOST_QUEUES = 20;
const MOST_WORKERS = 1_000;
const MOST_ACTIVE = 1_000;
const GAUGES_EVERY = 10_000;
/** Counting reads all jobs, so it may take at most this share of the time. */
const SHARE = 1 / 20;

type Depths = readonly (readonly [queue: string, states: Readonly<Record<string, number>>])[];

/** Stats from the store: read seldom, one read at a time, and cached in between. */
class Gauges {
  readonly #engine: Engine;
  readonly #system: Pick<System, "monotonic">;
  #depths: Depths = [];
  #workers = 0;
  #silences: ReadonlyMap<string, number> = new Map();
  #dueAt = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;

  constructor(engine: Engine, system: Pick<System, "monotonic">) {
    this.#engine = engine;
    this.#system = system;
  }

  async write(page: Exposition, tallies: readonly Tally[]): Promise<void> {
    const isFirst = this.#dueAt === Number.NEGATIVE_INFINITY;
    if (this.#system.monotonic() >= this.#dueAt) {
      // A store that does not answer must not hide the counters, which need no store.
      this.#asking ??= this.#ask(tallies).catch(() => {});
      if (isFirst) await this.#asking;
    }
    page
      .gauge(
        "ojs_queue_depth",
        "Jobs by queue and state, of the queues this server has seen.",
        this.#depths.flatMap(([queue, states]) =>
          JOB_STATES.map((state) => [{ queue, state }, states[state] ?? 0] as const),
        ),
      )
      .gauge(
        "ojs_workers_busy",
        "Running jobs by queue, of the queues this server has seen.",
        this.#depths.map(([queue, states]) => [{ queue }, states.active ?? 0] as const),
      )
      .gauge("ojs_workers_active", "Workers with a recent heartbeat.", [[{}, this.#workers]])
      .gauge(
        "ojs_job_heartbeat_age_seconds",
        "Seconds since the last beat of the most silent active job that has a heartbeat.",
        [...this.#silences].map(([queue, age]) => [{ queue }, age / 1_000] as const),
      );
  }

  async #ask(tallies: readonly Tally[]): Promise<void> {
    const from = this.#system.monotonic();
    try {
      const depths: [string, Record<string, number>][] = [];
      for (const queue of busiest(tallies)) depths.push([queue, await this.#engine.queues.depth(queue)]);
      this.#depths = depths;
      const records = await this.#engine.store.records.list("worker", null, MOST_WORKERS);
      const now = this.#engine.now();
      this.#workers = records.filter(({ wakeAt }) => wakeAt === null || wakeAt > now).length;
      const { jobs } = await this.#engine.service.rows.find({ state: "active" }, { limit: MOST_ACTIVE });
      this.#silences = longestSilences(jobs, now);
    } finally {
      const took = this.#system.monotonic() - from;
      this.#dueAt = this.#system.monotonic() + Math.max(GAUGES_EVERY, took / SHARE);
      this.#asking = undefined;
    }
  }
}

/** The stall deadline minus the heartbeat is the last beat. */
function longestSilences(jobs: readonly JobRow[], now: number): ReadonlyMap<string, number> {
  const silences = new Map<string, number>();
  for (const { queue, stallAt, heartbeat } of jobs) {
    if (stallAt === null || heartbeat === null) continue;
    const age = Math.max(0, now - (stallAt - heartbeat));
    silences.set(queue, Math.max(age, silences.get(queue) ?? 0));
  }
  return silences;
}

/** The queues with the most traffic, and the default queue. */
function busiest(tallies: readonly Tally[]): string[] {
  const traffic = new Map<string, number>([["default", 0]]);
  for (const { queue, enqueued, wait } of tallies) {
    if (queue !== OTHER) traffic.set(queue, (traffic.get(queue) ?? 0) + enqueued + wait.total);
  }
  const byTraffic = [...traffic].sort(([, a], [, b]) => b - a);
  return byTraffic.slice(0, MOST_QUEUES).map(([queue]) => queue);
}
