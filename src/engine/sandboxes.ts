import type { SandboxRefusal, SandboxRunner } from "../ports/sandbox.ts";
import type { AttemptParts } from "./parts.ts";
import type { Processor } from "./processor.ts";

/** The sandboxes of one worker: opened with it, and closed with it. */
export class Sandboxes {
  readonly #runners = new Map<Processor, SandboxRunner>();
  readonly #parts: AttemptParts;
  readonly #worker: string;

  constructor(parts: AttemptParts, worker: string, processors: Iterable<Processor>, concurrency: number) {
    this.#parts = parts;
    this.#worker = worker;
    const { system, logger } = parts;
    for (const processor of processors) {
      if (!processor.sandbox) continue;
      const changed = (refusal: SandboxRefusal | null) => this.#changed(processor, refusal);
      this.#runners.set(processor, processor.sandbox({ system, logger, concurrency, changed }));
    }
  }

  of(processor: Processor): SandboxRunner | undefined {
    return this.#runners.size === 0 ? undefined : this.#runners.get(processor);
  }

  refusal(processor: Processor): SandboxRefusal | null {
    return this.of(processor)?.refusal() ?? null;
  }

  /** What keeps jobs of a sandbox from being run, for readiness checks. */
  get problem(): string | null {
    for (const [{ definition }, runner] of this.#runners) {
      const refusal = runner.refusal();
      if (refusal) return `sandbox of ${definition.type}: ${refusal.reason}`;
    }
    return null;
  }

  #changed({ definition }: Processor, refusal: SandboxRefusal | null): void {
    const { bus, clock, logger } = this.#parts;
    const reason = refusal?.reason ?? null;
    const { type } = definition;
    if (refusal)
      logger.error({ type, reason }, "a sandbox is broken; its jobs are given back until it loads");
    else logger.info({ type }, "a sandbox that was broken loads again");
    const name = refusal ? "sandbox.broken" : "sandbox.mended";
    bus.emit({ name, at: clock.now(), worker: this.#worker, type, reason });
  }

  async close(): Promise<void> {
    await Promise.all([...this.#runners.values()].map((runner) => runner.close()));
  }
}
