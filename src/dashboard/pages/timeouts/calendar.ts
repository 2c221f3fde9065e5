import type { Timeout } from "../../../ojs/replies/wire-replies.ts";

/** Days of the viewer's zone. A day is named by its date: `2026-11-16`. */

export interface Day {
  readonly name: string;
  readonly from: number;
  readonly to: number;
  readonly number: number;
  readonly isInMonth: boolean;
}

const pad = (value: number) => String(value).padStart(2, "0");

export function dayName(at: number): string {
  const date = new Date(at);
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
}

/** The day of a name; undefined where it is none. */
export function dayOf(name: string | null): Pick<Day, "name" | "from" | "to"> | undefined {
  const parts = /^(\d{4})-(\d{2})-(\d{2})$/.exec(name ?? "");
  if (!parts) return undefined;
  const [year, month, day] = [Number(parts[1]), Number(parts[2]) - 1, Number(parts[3])];
  const from = new Date(year, month, day).getTime();
  // A day on which the clocks change is not 24 hours long.
  return { name: dayName(from), from, to: new Date(year, month, day + 1).getTime() };
}

/** The weeks that a month is in, from Monday on. */
export function weeksOf(at: number): Day[][] {
  const date = new Date(at);
  const [year, month] = [date.getFullYear(), date.getMonth()];
  const lead = (new Date(year, month, 1).getDay() + 6) % 7;
  const length = new Date(year, month + 1, 0).getDate();
  const weeks = Math.ceil((lead + length) / 7);
  return Array.from({ length: weeks }, (_, week) =>
    Array.from({ length: 7 }, (_, weekday) => {
      const day = new Date(year, month, 1 - lead + week * 7 + weekday);
      const next = new Date(year, month, 2 - lead + week * 7 + weekday);
      return {
        name: dayName(day.getTime()),
        from: day.getTime(),
        to: next.getTime(),
        number: day.getDate(),
        isInMonth: day.getMonth() === month,
      };
    }),
  );
}

/** How many are due on each day. */
export function countByDay(timeouts: readonly Timeout[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { due_at } of timeouts) {
    const name = dayName(Date.parse(due_at));
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}

/** How many are due in each hour of a day. */
export function countByHour(timeouts: readonly Timeout[], { from, to }: Pick<Day, "from" | "to">): number[] {
  const counts = Array.from({ length: Math.round((to - from) / 3_600_000) }, () => 0);
  for (const { due_at } of timeouts) {
    const hour = Math.floor((Date.parse(due_at) - from) / 3_600_000);
    if (hour >= 0 && hour < counts.length) counts[hour] = (counts[hour] ?? 0) + 1;
  }
  return counts;
}
