import { z } from "zod";
import { MOST_POOL_CONCURRENCY, type PoolOptions } from "../../core/fair/worker-pool.ts";
import type { PoolView } from "../../engine/remote/pools.ts";
import { poolStrategy, queueWeights } from "./fair.ts";
import { queueName } from "./schemas.ts";

/** Pools of workers, of the extension for fair scheduling. */

const count = z.int().min(0);

const starvation = z.looseObject({
  enabled: z.boolean().nullish(),
  rotation_interval: z.string().max(64).nullish(),
  min_dispatch_ratio: z.number().gt(0).max(1).nullish().meta({
    description: "The share of starts that each queue gets at least; default 0.05.",
  }),
});

export const poolSchema = z
  .looseObject({
    name: z.string().max(255).nullish(),
    queues: z.array(queueName).min(1).max(100),
    strategy: poolStrategy.nullish(),
    weights: queueWeights.nullish(),
    concurrency: z.int().min(1).max(MOST_POOL_CONCURRENCY).nullish().meta({
      description: "Jobs that the workers of the pool run at once, of those that this server handed out.",
    }),
    isolated: z.boolean().nullish().meta({ description: "Other workers get no jobs of these queues." }),
    starvation_prevention: starvation.nullish(),
  })
  .meta({ id: "PoolRequest" });

const LEAST_SHARE = 0.05;

export function readPool(body: z.output<typeof poolSchema>): PoolOptions {
  const { queues, strategy, weights, concurrency, isolated, starvation_prevention: starved } = body;
  const leastShare = starved?.enabled ? (starved.min_dispatch_ratio ?? LEAST_SHARE) : undefined;
  return {
    queues,
    ...(strategy != null && { strategy }),
    ...(weights != null && { weights }),
    ...(concurrency != null && { concurrency }),
    ...(isolated != null && { isolated }),
    ...(leastShare !== undefined && { leastShare }),
  };
}

const poolFieldsSchema = z
  .looseObject({
    name: z.string(),
    queues: z.array(z.string()),
    strategy: poolStrategy,
    weights: queueWeights.optional(),
    concurrency: z.int().min(1).optional(),
    isolated: z.boolean(),
    active_workers: count,
    active_jobs: count,
  })
  .meta({ id: "Pool" });

export const poolReply = z
  .looseObject({ pool: poolFieldsSchema, deleted: z.boolean().optional() })
  .meta({ id: "PoolReply" });
export const poolsReply = z
  .looseObject({ items: z.array(poolFieldsSchema), pools: z.array(poolFieldsSchema) })
  .meta({ id: "Pools" });

export function poolFields(view: PoolView) {
  const { name, queues, strategy, weights, concurrency, isolated = false, leastShare } = view;
  return {
    name,
    queues,
    strategy,
    ...(weights && { weights }),
    ...(concurrency !== undefined && { concurrency }),
    isolated,
    ...(leastShare !== undefined && {
      starvation_prevention: { enabled: true, min_dispatch_ratio: leastShare },
    }),
    active_workers: view.workers,
    active_jobs: view.active,
  };
}
