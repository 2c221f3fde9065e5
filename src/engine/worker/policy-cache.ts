import type { JobRow, Policy } from "../../core/job/job.ts";
import { resolvePolicy } from "../../core/job/policy.ts";
import type { Processor } from "../attempt/processor.ts";
import type { EngineContext } from "../context.ts";

/** Caches the policies of jobs without settings of their own: one per processor and queue, until a queue setting changes. */
export class PolicyCache {
  readonly #context: Pick<EngineContext, "queues" | "settings">;
  readonly #known = new Map<Processor, Map<string, Policy>>();
  #epoch = -1;

  constructor(context: Pick<EngineContext, "queues" | "settings">) {
    this.#context = context;
  }

  of(processor: Processor, row: JobRow): Policy {
    const { queues, settings: engine } = this.#context;
    const definition = processor.definition.settings;
    const enqueue = row.options?.settings;
    const queue = queues.policyOf(row.queue);
    if (enqueue) return resolvePolicy({ enqueue, definition, queue, engine });
    if (this.#epoch !== queues.epoch) {
      this.#known.clear();
      this.#epoch = queues.epoch;
    }
    const byQueue = this.#known.get(processor) ?? new Map<string, Policy>();
    const policy = byQueue.get(row.queue) ?? resolvePolicy({ definition, queue, engine });
    this.#known.set(processor, byQueue.set(row.queue, policy));
    return policy;
  }
}
