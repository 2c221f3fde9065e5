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
    const { queues, learned } = this.#context;
    if (row.options?.settings) return this.#resolve(processor, row);
    // Both only grow, so the sum is as good as the pair.
    const epoch = queues.epoch + learned.epoch;
    if (this.#epoch !== epoch) {
      this.#known.clear();
      this.#epoch = epoch;
    }
    return this.#known.get(processor)?.get(row.queue) ?? this.#learn(processor, row);
  }

  #learn(processor: Processor, row: JobRow): Policy {
    const policy = this.#resolve(processor, row);
    const byQueue = this.#known.get(processor) ?? new Map<string, Policy>();
    this.#known.set(processor, byQueue.set(row.queue, policy));
    return policy;
  }

  #resolve({ definition }: Processor, row: JobRow): Policy {
    const { queues, settings: engine, learned } = this.#context;
    const enqueue = row.options?.settings;
    const sources = { definition: definition.settings, queue: queues.policyOf(row.queue), engine };
    const learnedBy = (rule: AdaptiveRule) => learned.of(row.type, rule);
    return resolvePolicy(enqueue ? { enqueue, ...sources } : sources, LOCAL_WORKER, learnedBy);
  }
}
