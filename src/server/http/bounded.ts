import type { System } from "../../ports/system.ts";

/** Stops an action on many jobs between two batches, after `longest` milliseconds or when the client left. */
export function bounded(
  system: Pick<System, "monotonic">,
  isGone: () => boolean,
  longest: number,
): { readonly signal: AbortSignal; readonly onProgress: () => void } {
  const startedAt = system.monotonic();
  const stop = new AbortController();
  const onProgress = () => {
    if (isGone() || system.monotonic() - startedAt > longest) stop.abort();
  };
  return { signal: stop.signal, onProgress };
}
