import type { System } from "../ports/system.ts";

/** Waits for something, but not for ever. The process stays meanwhile: a kill that was begun is seen through. */
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
