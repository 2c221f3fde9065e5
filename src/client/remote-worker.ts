import { hostname } from "node:os";
import type { JobRow } from "../core/job/job.ts";
import { MOST_PROCESSORS } from "../core/worker/worker-report.ts";
import type { Verdict } from "../engine/attempt/running-attempt.ts";
import type { AttemptParts } from "../engine/context.ts";
import type { WorkerStatus, WorkOptions } from "../engine/worker/work-options.ts";
import { type ShellDeps, WorkerShell } from "../engine/worker/worker-shell.ts";
import { Fetcher } from "./fetcher.ts";
import { RemoteAttempt, type RemoteAttemptDeps } from "./remote-attempt.ts";
import type { AttemptNotes } from "./remote-attempt-notes.ts";
import { type Heard, RemoteBeat } from "./remote-beat.ts";
import { type Fetched, RemoteConsumer } from "./remote-consumer.ts";
import { Reports } from "./reports.ts";
import type { Transport } from "./transport.ts";

export interface RemoteWorkerStatus extends WorkerStatus {
  /** Verdicts without an answer from the server. */
  readonly unreported: number;
}

const UNREPORTED_ROOM = 200;

/** Fetches jobs from a server, runs their handlers under its deadlines, and reports the verdicts. */
export class RemoteWorker extends WorkerShell<RemoteAttempt, RemoteConsumer> implements RemoteAttemptDeps {
  readonly transport: Transport;
  protected override readonly beat: RemoteBeat;
  readonly #reports: Reports;
  readonly #fetcher: Fetcher;
  readonly #onClosed: (worker: RemoteWorker) => void;
  #isQuiet = false;

  constructor(
    shared: ShellDeps<AttemptParts> & { readonly transport: Transport },
    options: WorkOptions,
    onClosed: (worker: RemoteWorker) => void,
  ) {
    super(shared, options);
    for (const [queue, concurrency] of this.slots)
      this.consumers.set(queue, new RemoteConsumer(this, queue, concurrency));
    const { parts, transport } = shared;
    this.transport = transport;
    this.#onClosed = onClosed;
    this.#fetcher = new Fetcher(this, [...this.processors.values()]);
    this.beat = new RemoteBeat(this);
    this.#reports = new Reports({
      id: this.id,
      transport,
      system: parts.system,
      logger: parts.logger,
      lost: (row) => this.#lost(row),
      reported: () => this.pumpAll(),
    });
  }

  override status(): RemoteWorkerStatus {
    return { ...super.status(), unreported: this.#reports.backlog };
  }

  protected override get problem(): string | null {
    return this.#isQuiet ? "the server asked it to stop fetching" : super.problem;
  }

  protected override failureOf({ queue, failure }: RemoteConsumer): string {
    return `fetches from queue ${queue} are failing: ${failure}`;
  }

  protected override get outgoing(): Reports {
    return this.#reports;
  }

  get canFetch(): boolean {
    return this.canClaim && !this.#isQuiet;
  }

  get room(): number {
    return (
      this.concurrency + UNREPORTED_ROOM - this.running.size - this.prefetchedCount - this.#reports.backlog
    );
  }

  fetch(queue: string, count: number): Promise<Fetched> {
    return this.#fetcher.fetch(queue, count);
  }

  confirm(rows: readonly JobRow[]): Promise<Set<JobRow>> {
    return this.beat.confirm(rows);
  }

  giveBack(rows: readonly JobRow[]): void {
    for (const row of rows) this.report(row, { type: "release" }, undefined);
  }

  enter(consumer: RemoteConsumer, row: JobRow): void {
    const processor = this.processorOf(row);
    const refusal = processor && this.sandboxes.refusal(processor);
    // Deadlines run from the fetch. A handler never starts after one (SEMANTICS 3.1).
    const endsAt = Math.min(row.softAt ?? Number.POSITIVE_INFINITY, row.stallAt ?? Number.POSITIVE_INFINITY);
    if (!processor || refusal || this.clock.upper() >= endsAt) {
      if (!processor) this.releaseUnknown(row);
      else this.report(row, { type: "release", ...(refusal && { delay: refusal.delay }) }, undefined);
      this.free(consumer);
      return;
    }
    // The server took this job back before, so its old attempt here is lost.
    for (const attempt of [...this.attempts()]) if (attempt.row.id === row.id) attempt.stop("lost");
    const attempt = new RemoteAttempt(this, processor, row, this.clock.elapsed());
    this.running.set(attempt, consumer);
    this.parts.counters.add("started");
    attempt.run();
  }

  protected override release(row: JobRow, delay: number): void {
    this.report(row, { type: "release", delay }, undefined);
  }

  report(row: JobRow, verdict: Verdict, notes: AttemptNotes | undefined): void {
    this.#reports.push({ row, verdict, notes });
  }

  #lost(row: JobRow): void {
    const { bus, clock, counters } = this.parts;
    counters.add("lost");
    if (bus.wants("job.lost")) bus.emit(bus.detail(row, "job.lost", clock.now()));
  }

  beaten(attempt: RemoteAttempt): void {
    this.beat.pace.hurry(attempt.row.heartbeat);
  }

  about(): Record<string, unknown> {
    return {
      state: this.isClosing ? "drain" : "running",
      hostname: hostname().slice(0, 255),
      pid: process.pid,
      // A beat may name at most 100 queues.
      queues: [...this.consumers.keys()].slice(0, 100),
      ...(this.processors.size <= MOST_PROCESSORS && { job_types: [...this.processors.keys()] }),
      concurrency: this.concurrency,
    };
  }

  *others(): Iterable<JobRow> {
    for (const consumer of this.consumers.values()) yield* consumer.held();
    yield* this.#reports.rows();
  }

  hear(attempt: RemoteAttempt, { directive, deadlines }: Heard): void {
    if (directive === "cancel") attempt.stop("cancelled");
    else if (directive === "lost") attempt.stop("lost");
    else {
      if (deadlines) attempt.refresh(deadlines);
      if (directive === "soft_timeout") attempt.hearSoftSignal();
    }
  }

  /** The clock changed: due deadlines fire before the rest of the reply is handled. */
  heardTime(): void {
    this.deadlines.look();
  }

  /** Obeys the operator's directive: quiet, terminate or neither. */
  direct(state: unknown): void {
    if (this.isClosing) return;
    const isQuiet = state === "quiet";
    if (isQuiet !== this.#isQuiet) {
      this.#isQuiet = isQuiet;
      this.parts.logger.info(
        { worker: this.id, state },
        isQuiet ? "the server asked this worker to stop fetching" : "the server asked this worker to resume",
      );
      if (!isQuiet) this.pumpAll();
    }
    if (state === "terminate") {
      this.parts.logger.info({ worker: this.id }, "the server asked this worker to shut down");
      void this.close();
    }
  }

  failed(error: unknown, during: string): void {
    const { bus, clock, logger } = this.parts;
    if (this.transport.isClosed) return;
    logger.warn({ error, during }, "the server failed");
    bus.emit({ name: "store.error", at: clock.now(), during, error });
  }

  protected override giveBackPrefetched(consumer: RemoteConsumer): void {
    this.giveBack(consumer.takePrefetched());
  }

  /** Beats at once, so that the server answers a waiting fetch. */
  protected override closing(): void {
    this.beat.pace.loop.wake();
  }

  protected override closed(): void {
    this.#onClosed(this);
  }
}
