const STEPS = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "m"],
  [1_000, "s"],
] as const;

/** A length of time in at most two units: "2h 5m", "3s", "120ms". */
export function spanText(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.max(0, Math.round(milliseconds))}ms`;
  const at = STEPS.findIndex(([step]) => milliseconds >= step);
  const [step, unit] = STEPS[at] as (typeof STEPS)[number];
  const whole = Math.floor(milliseconds / step);
  const next = STEPS[at + 1];
  const rest = next === undefined ? 0 : Math.floor((milliseconds - whole * step) / next[0]);
  return next === undefined || rest === 0 || whole >= 10
    ? `${whole}${unit}`
    : `${whole}${unit} ${rest}${next[1]}`;
}

/** An instant relative to `now`: "3m ago", "in 2h", "now". */
export function relativeTime(at: number, now: number): string {
  const distance = at - now;
  if (Math.abs(distance) < 1_000) return "now";
  return distance < 0 ? `${spanText(-distance)} ago` : `in ${spanText(distance)}`;
}

/** The same for an instant of the wire; a dash if there is none. */
export function relativeText(at: unknown, now: number): string {
  if (typeof at !== "string") return "-";
  const instant = Date.parse(at);
  return Number.isNaN(instant) ? "-" : relativeTime(instant, now);
}
