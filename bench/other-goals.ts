/** One line of the table at the top of docs/benchmarks.md. */
export interface GoalLine {
  readonly goal: string;
  readonly figure: string;
  /** The day of the figure. */
  readonly on: string;
  readonly isMet: boolean;
  /** What measures it again. */
  readonly command: string;
}

/**
 * Goals that `npm run bench:publish` does not measure, because their commands take long or need a machine of their own. After a run
 * of one of them, write its figure here: `npm run bench:publish -- --write` puts it into docs/benchmarks.md.
 */
export const OTHER_GOALS: readonly GoalLine[] = [
  {
    goal: "lateness of 2,000 delayed jobs a second, p99 below 15 ms",
    figure: "16.1 ms on PostgreSQL 18; 6.6 ms on SQLite",
    on: "2026-11-16",
    isMet: false,
    command: "npm run bench -- delayed curfew-drop",
  },
  {
    goal: "recorded events cost a drain at most 10 %, PostgreSQL",
    figure: "41 % of the server's CPU dropped, 24 % kept (3 rounds, loaded)",
    on: "2026-11-18",
    isMet: false,
    command: "npm run bench -- drain-10 postgres/curfew --servers 18",
  },
  {
    goal: "an engine at rest: at most 1 statement a second, 2 connections",
    figure: "1.00 and 2",
    on: "2026-11-18",
    isMet: true,
    command: "npm run bench:idle",
  },
  {
    goal: "the same with 1,000 queues, beside 10,000 crons",
    figure: "0.95 and 2",
    on: "2026-11-18",
    isMet: true,
    command: "npm run bench:idle -- --queues 1000 --crons 10000",
  },
  {
    goal: "500 engines at rest: at most 20 % of a core of PostgreSQL",
    figure: "15.6 %; 19 % at a usual pace",
    on: "2026-11-18",
    isMet: true,
    command: "npm run bench:idle -- --processes 500",
  },
  {
    goal: "100 small queues drain as fast as one, by the server's CPU for a job",
    figure: "1.2 × with 1 process, 3.2 × with 8",
    on: "2026-11-17",
    isMet: false,
    command: "npm run bench:scale",
  },
  {
    goal: "four worker processes scale: a job costs the server what it costs with one",
    figure: "1.03 ×; 1.13 × with eight",
    on: "2026-11-17",
    isMet: true,
    command: "npm run bench:scale -- --queues 1",
  },
  {
    goal: "cold sandbox: at most 150 ms of CPU until its handler runs",
    figure: "85 ms (p99 94)",
    on: "2026-11-18",
    isMet: true,
    command: "npm run bench:sandbox-start",
  },
  {
    goal: "no-op job in a warm sandbox: p50 at most 0.3 ms",
    figure: "0.34 ms in a process, 0.20 in a thread",
    on: "2026-11-16",
    isMet: false,
    command: "node bench/sandbox.ts 200",
  },
  {
    goal: "sandbox that hangs is gone 100 ms after its hard deadline, p99",
    figure: "85 ms (worst way to hang)",
    on: "2026-11-16",
    isMet: true,
    command: "node bench/sandbox.ts 200",
  },
];
