import type { JobRow, Policy, PolicySettings } from "../../core/job/job.ts";
import { resolvePolicy, ruleOf, type WorkerKind } from "../../core/job/policy/policy.ts";
import type { AdaptiveRule } from "../../core/stats/adaptive-limit.ts";
import type { EngineContext } from "../context.ts";

const MOST_POLICIES = 2_000;

/** The policies of jobs that remote workers start. */
export class RemotePolicies {
  readonly #context: EngineContext;
  readonly #policies = new Map<string, Policy>();
  #epoch = -1;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** Most jobs of a queue share their policy, so it is cached until a queue setting changes. */
  of(row: JobRow, kind: WorkerKind, definition: PolicySettings | undefined): Policy {
    const { queues, settings: engine, learned } = this.#context;
    const queue = queues.policyOf(row.queue);
    const enqueue = row.options?.settings;
    const learnedBy = (rule: AdaptiveRule) => learned.of(row.type, rule);
    // A limit of the queue or the engine that follows runs differs by type.
    if (enqueue || definition || ruleOf(queue) || ruleOf(engine))
      return resolvePolicy({ enqueue, definition, queue, engine }, kind, learnedBy);
    if (this.#epoch !== queues.epoch || this.#policies.size >= MOST_POLICIES) {
      this.#policies.clear();
      this.#epoch = queues.epoch;
    }
    // By worker too: a store writes the JSON of a policy object once, so each worker needs one object.
    const key = `${row.queue} ${kind.hears} ${kind.visibility} ${kind.caller} ${kind.worker}`;
    const known = this.#policies.get(key);
    if (known) return known;
    const policy = resolvePolicy({ queue, engine }, kind);
    this.#policies.set(key, policy);
    return policy;
  }
}
