import type { Duration } from "../core/time.ts";
import type { EngineContext } from "./context.ts";
import { CLOSE_LIMIT, CLOSE_MARKS, CloseBudget } from "./runtime/close-budget.ts";
import type { Worker } from "./worker/worker.ts";

type Parts = readonly (PromiseLike<unknown> | undefined)[];

/**
 * Closes an engine: first what takes jobs and its workers, then the loops and what waits to be written, then the store. A
 * store that does not answer holds up each step for a bounded time.
 */
export async function closeParts(
  { system, clock, store, waiters, bus, tenant }: EngineContext,
  workers: readonly Worker[],
  options: { readonly drain?: Duration },
  { first, then }: { readonly first: Parts; readonly then: () => Parts },
): Promise<void> {
  const begun = system.monotonic();
  await Promise.all([...first, ...workers.map((worker) => worker.close(options))]);
  const drainedAt = Math.max(begun, ...workers.map((worker) => worker.drainedAt ?? begun));
  const budget = new CloseBudget(system, drainedAt);
  const stopped = Promise.all(then());
  // The engine of a tenant uses the clock of the one that was opened first.
  if (tenant === null) clock.close();
  await budget.until(CLOSE_MARKS.loops, stopped);
  waiters.close();
  await budget.until(CLOSE_LIMIT, store.close());
  bus.close();
}
