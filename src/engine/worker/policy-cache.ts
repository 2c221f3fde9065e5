import type { JobRow, Policy } from "../../core/job/job.ts";
import { LOCAL_WORKER, resolvePolicy } from "../../core/job/policy/policy.ts";
import type { AdaptiveRule } from "../../core/stats/adaptive-limit.ts";
import type { Processor } from "../attempt/processor.ts";
import type { EngineContext } from "../context.ts";

/** Caches the policies of jobs without settings of their own: one per processor and queue, until a queue setting or a learned limit changes. */
export class PolicyCache {
  readonly #context: Pick<EngineContext, "queues" | "settings" | "learned">;
  readonly #known = new Map<Processor, Map<string, Policy>>();
  #epoch = -1;

  constructor(context: Pick<EngineContext, "queues" | "settings" | "learned">) {
    this.#context = context;
  }

  of(processor: Processor, row: JobRow): Policy {
    const { queues, settings: engine, learned } = this.#context;
    const definition = processor.definition.settings;
    const enqueue = row.options?.settings;
    const queue = queues.policyOf(row.queue);
    const learnedBy = (rule: AdaptiveRule) => learned.of(row.type, rule);
    if (enqueue) return resolvePolicy({ enqueue, definition, queue, engine }, LOCAL_WORKER, learnedBy);
    // Both only grow, so the sum is as good as the pair.
    const epoch = queues.epoch + learned.epoch;
    if (this.#epoch !== epoch) {
      this.#known.clear();
      this.#epoch = epoch;
    }
    const byQueue = this.#known.get(processor) ?? new Map<string, Policy>();
    const policy =
      byQueue.get(row.queue) ?? resolvePolicy({ definition, queue, engine }, LOCAL_WORKER, learnedBy);
    this.#known.set(processor, byQueue.set(row.queue, policy));
    return policy;
  }
}
