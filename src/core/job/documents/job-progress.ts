import { refuse } from "../../errors.ts";
import { type Json, toJsonText } from "../../schema.ts";
import type { JobRow } from "../job.ts";

/** The error that sums of fractions may have. */
const ROUNDING = 1e-6;

/** How far an attempt is, from 0 to 1. A percentage such as 50 is refused: cut to 1, it would look finished. */
export function progressFraction(fraction: number): number {
  // NaN fails this comparison too.
  if (!(fraction >= -ROUNDING && fraction <= 1 + ROUNDING))
    throw refuse("invalid_option", "progress", fraction, "pass a fraction from 0 to 1");
  return Math.min(1, Math.max(0, fraction));
}

export function progressText(fraction: number, note: Json | undefined, limit: number): string {
  const value = progressFraction(fraction);
  return toJsonText({ value, ...(note !== undefined && { note }) }, "progress", limit);
}

/** A stored progress report. */
export interface ProgressNote {
  readonly value: number;
  readonly note?: Json;
}

export function progressOf(row: Pick<JobRow, "progress">): ProgressNote | null {
  return row.progress === null ? null : (JSON.parse(row.progress) as ProgressNote);
}
