import type { Logger } from "../ports/log.ts";

let isIgnored = false;

/**
 * Node opens the debugger of a process at SIGUSR1, and a sandbox may signal its worker and then run code in it. Any
 * listener keeps Node from doing that. It stays for the life of the process: without one, SIGUSR1 would end it.
 * A worker thread gets no signals, so a listener there has no effect.
 */
export function ignoreDebugSignal(logger: Logger): void {
  if (isIgnored || process.platform === "win32") return;
  isIgnored = true;
  let hasWarned = false;
  process.on("SIGUSR1", () => {
    if (hasWarned) return;
    hasWarned = true;
    logger.warn(
      {},
      "SIGUSR1 does not open the debugger of a process with sandboxes; see sandbox.debugSignal",
    );
  });
}
