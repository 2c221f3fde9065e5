import type { System } from "../../ports/system.ts";

/** Waits for something, but not for ever: a store that hangs must not keep a close() from keeping its own time. */
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
