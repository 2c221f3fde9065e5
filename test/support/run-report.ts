/**
 * What a long run came to, kept as JSON in `docs/reliability/`. `npm run docs` makes the page `docs/reliability.md` from
 * these files.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";

/** The kinds of long runs. The page has one section for each. */
export const LANES = [
  "simulator",
  "chaos",
  "failover",
  "cluster",
  "attack",
  "fuzz",
  "webhooks",
  "postgres",
] as const;
export type Lane = (typeof LANES)[number];

export interface RunReport {
  /** The command that repeats it. */
  readonly command: string;
  /** What it ran on: a store, or a kind of simulated world. Runs on the same one are added up. */
  readonly on: string;
  readonly version: string;
  /** The day of its end, as in 2026-11-17. */
  readonly date: string;
  readonly seconds: number;
  /** Numbers that are added up over runs. The names are the columns of the page. */
  readonly counts: { readonly [name: string]: number };
  /** Values that were measured, and of which the largest counts. */
  readonly worst?: { readonly [name: string]: number };
  /** Rules that did not hold, each with what replays it. */
  readonly findings: readonly string[];
}

export interface LaneFile {
  readonly lane: Lane;
  readonly runs: readonly RunReport[];
}

export type NewRun = Omit<RunReport, "version" | "date" | "seconds"> & { readonly startedAt: number };

const MOST_FINDINGS = 50;

/** Adds a run to a file, which may have runs of the same lane. Does nothing without a file. `startedAt` is `performance.now()`. */
export function addRun(file: string | undefined, lane: Lane, { startedAt, ...run }: NewRun): void {
  if (file === undefined) return;
  const before: LaneFile = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : { lane, runs: [] };
  if (before.lane !== lane)
    throw new Error(`--report: ${file} has runs of the lane ${before.lane}; name another file for ${lane}`);
  const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  const added: RunReport = {
    ...run,
    findings: run.findings.slice(0, MOST_FINDINGS),
    version: (JSON.parse(manifest) as { version: string }).version,
    date: new Date().toISOString().slice(0, 10),
    seconds: Math.round((performance.now() - startedAt) / 1_000),
  };
  const after: LaneFile = { lane, runs: [...before.runs, added] };
  writeFileSync(file, `${JSON.stringify(after, null, 2)}\n`);
}
