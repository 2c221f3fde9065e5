import { realSystem } from "../engine/runtime/real-system.ts";

/** Waits; returns early when the signal aborts. */
export function rest(delay: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      timer.cancel();
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = realSystem.after(delay, end, { keepAlive: true });
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });
}
