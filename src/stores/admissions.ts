import type { NewJob } from "../core/job/enqueue/envelope.ts";
import type { Effect } from "../ports/store.ts";

/** The bounded queues that the jobs of a call go to, sorted by name. */
export function boundedQueues(jobs: readonly NewJob[], bounds: ReadonlyMap<string, number>): string[] {
  const queues = new Set<string>();
  for (const { queue } of jobs) if (bounds.has(queue)) queues.add(queue);
  return [...queues].sort();
}

/**
 * The effects of many units in the order in which to apply them. Jobs of one key often settle together, so each limit
 * admits once, after everything else. Limits are sorted by key, so that two transactions do not deadlock.
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
