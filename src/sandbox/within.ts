import type { System } from "../ports/system.ts";

/**
 * Waits for `done`, but at most `delay` milliseconds. Keeps the process alive meanwhile, so that a kill is completed.
 */
export function within(system: System, delay: number, done: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const timer = system.after(delay, resolve, { keepAlive: true });
    const end = () => {
      timer.cancel();
      resolve();
    };
    done.then(end, end);
  });
}
