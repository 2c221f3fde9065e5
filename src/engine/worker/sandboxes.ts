import type { JobRow } from "../../core/job/job.ts";
import type { ReportedSandbox } from "../../core/worker/worker-report.ts";
import type { SandboxRefusal, SandboxRunner } from "../../ports/sandbox.ts";
import type { Processor } from "../attempt/processor.ts";
import { runKey } from "../attempt/sandboxed-run.ts";
import type { AttemptParts } from "../context.ts";

/** The sandboxes of one worker, one runner per job type. */
export class Sandboxes {
  readonly #runners = new Map<string, SandboxRunner>();
  readonly #context: AttemptParts;
  readonly #worker: string;

  constructor(context: AttemptParts, worker: string, processors: Iterable<Processor>, concurrency: number) {
    this.#context = context;
    this.#worker = worker;
    const { system, logger } = context;
    for (const processor of processors) {
      if (!processor.sandbox) continue;
      const { type } = processor.definition;
      const changed = (refusal: SandboxRefusal | null) => this.#changed(type, refusal);
      this.#runners.set(type, processor.sandbox({ system, logger, concurrency, changed }));
    }
  }

  get isEmpty(): boolean {
    return this.#runners.size === 0;
  }

  of(processor: Processor): SandboxRunner | undefined {
    return this.isEmpty ? undefined : this.#runners.get(processor.definition.type);
  }

  /**
   * Whether a sandbox is free for the job. If not, calls `again` once one is. An attempt starts when its handler is
   * entered (SEMANTICS 3.1), so its time does not include the start of a process.
   */
  admits(row: JobRow, again: () => void): boolean {
    return this.#runners.get(row.type)?.admits(runKey(row), again) ?? true;
  }

  dismiss(row: JobRow): void {
    this.#runners.get(row.type)?.dismiss(runKey(row));
  }

  refusal(processor: Processor): SandboxRefusal | null {
    return this.of(processor)?.refusal() ?? null;
  }

  /** The first sandbox that cannot run jobs, and why, for readiness checks. */
  get problem(): string | null {
    for (const [type, runner] of this.#runners) {
      const refusal = runner.refusal();
      if (refusal) return `sandbox of ${type}: ${refusal.reason}`;
    }
    return null;
  }

  /** The sandboxes that are broken or that a job waits for, by type. */
  report(): Record<string, ReportedSandbox> {
    const all: Record<string, ReportedSandbox> = {};
    for (const [type, runner] of this.#runners) {
      const status = runner.status();
      const problem = runner.refusal()?.reason ?? null;
      if (problem !== null || status.waiting > 0) all[type] = { ...status, problem };
    }
    return all;
  }

  #changed(type: string, refusal: SandboxRefusal | null): void {
    const { bus, clock, logger } = this.#context;
    const reason = refusal?.reason ?? null;
    if (refusal) logger.error({ type, reason }, "a sandbox is broken; its jobs are released until it loads");
    else logger.info({ type }, "a broken sandbox loads again");
    const name = refusal ? "sandbox.broken" : "sandbox.mended";
    bus.emit({ name, at: clock.now(), worker: this.#worker, type, reason });
  }

  async close(): Promise<void> {
    await Promise.all([...this.#runners.values()].map((runner) => runner.close()));
  }
}
