/** The browser's clock and timers. This is the only file of the dashboard that touches them. */

/** This machine's idea of the time, which may be wrong: `state/clock.ts` has the server's. */
export const localNow = (): number => Date.now();

/** Calls once, later; the result cancels it. */
export function after(delay: number, call: () => void): () => void {
  const timer = setTimeout(call, delay);
  return () => clearTimeout(timer);
}

/** Calls again and again; the result ends it. */
export function every(period: number, call: () => void): () => void {
  const timer = setInterval(call, period);
  return () => clearInterval(timer);
}
