import type { NewJob } from "../core/job/envelope.ts";
import type { Effect } from "../ports/store.ts";

/** The bounded queues that jobs of a call go to, in the order of their names. */
export function boundedQueues(jobs: readonly NewJob[], bounds: ReadonlyMap<string, number>): string[] {
  const queues = new Set<string>();
  for (const { queue } of jobs) if (bounds.has(queue)) queues.add(queue);
  return [...queues].sort();
}

/**
 * Effects of many units in the order to apply them. Jobs of one key settle many at a time: what the limit of a limit
 * leaves room for is looked at once, after everything else, and limits in the order of their names, so that two
 * transactions do not wait for each other.
 */
export function admissionsLast(effects: readonly Effect[]): readonly Effect[] {
  if (!effects.some(isFilling)) return effects;
  const limits = new Map<string, Effect>();
  for (const effect of effects) if (isFilling(effect)) limits.set(effect.admit, effect);
  const sorted = [...limits].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, effect]) => effect);
  return [...effects.filter((effect) => !isFilling(effect)), ...sorted];
}

function isFilling(effect: Effect): effect is Extract<Effect, { admit: string }> {
  return "admit" in effect && effect.limit !== undefined;
}
