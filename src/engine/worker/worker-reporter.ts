import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import { reportedProcessors } from "../../core/worker/worker-report.ts";
import type { Processor } from "../attempt/processor.ts";
import type { QueueConsumer } from "./queue-consumer.ts";
import type { Sandboxes } from "./sandboxes.ts";
import type { StuckHandlers } from "./stuck-handlers.ts";

interface ReporterDeps {
  readonly isClosing: boolean;
  readonly processors: ReadonlyMap<string, Processor>;
  status(): { readonly reason: string | null };
  readonly sandboxes: Sandboxes;
  readonly consumers: ReadonlyMap<string, QueueConsumer>;
}

/**
 * What a worker writes about itself with each beat. From it, any process can say why a job does not run. It is built once
 * per beat, so it costs nothing per job.
 */
export class WorkerReporter {
  readonly #host: ReporterDeps;
  readonly #stuck: StuckHandlers;
  readonly #processors: Json | undefined;
  #blocked: { readonly at: Instant; readonly gap: number } | undefined;

  constructor(host: ReporterDeps, stuck: StuckHandlers) {
    this.#host = host;
    this.#stuck = stuck;
    this.#processors = reportedProcessors([...host.processors.values()].map(({ definition }) => definition));
  }

  /** The event loop was blocked for `gap` milliseconds, until now. */
  blocked(at: Instant, gap: number): void {
    this.#blocked = { at, gap: Math.round(gap) };
  }

  get #failing(): QueueConsumer | undefined {
    for (const consumer of this.#host.consumers.values()) if (consumer.loop.isFailing) return consumer;
    return undefined;
  }

  body(): { readonly [name: string]: Json } {
    const { reason: problem } = this.#host.status();
    const slots: Record<string, Json> = {};
    for (const { queue, running, concurrency } of this.#host.consumers.values())
      slots[queue] = [running, concurrency];
    const halted = this.#stuck.isFull ? "stuck" : this.#failing ? "failing" : null;
    const sandboxes = this.#host.sandboxes.report();
    return {
      slots,
      ...(this.#processors !== undefined && { processors: this.#processors }),
      ...(this.#host.isClosing && { state: "draining" }),
      ...(problem !== null && { problem }),
      ...(halted !== null && { halted }),
      ...(this.#blocked && { blocked: { ...this.#blocked } }),
      ...(this.#stuck.size > 0 && { stuck: this.#stuck.report() as unknown as Json }),
      ...(Object.keys(sandboxes).length > 0 && { sandboxes: sandboxes as unknown as Json }),
    };
  }
}
