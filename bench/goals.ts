import type { Database } from "./contender.ts";
import { medianOf, type Row } from "./report.ts";

/** What curfew wants to reach on each server of a database, as a ratio to a peer or as a figure. */
interface Goal {
  readonly workload: string;
  readonly database: Database;
  readonly says: string;
  /** NaN where somebody it needs was not measured. */
  readonly figure: (find: Find) => number;
  readonly atLeast?: number;
  readonly atMost?: number;
}

/** The median of a column on one server: `find("curfew drop", "rate")`. */
type Find = (name: string, key: string) => number;

const rateTo =
  (name: string, ...peers: string[]) =>
  (find: Find) =>
    find(name, "rate") / Math.max(...peers.map((peer) => find(peer, "rate")));

function drain(concurrency: number): Goal[] {
  const workload = `drain-${concurrency}`;
  const postgres = { workload, database: "postgres" } as const;
  const sqlite = { workload, database: "sqlite" } as const;
  const ratio = (name: string, peer: string, atLeast: number) => ({
    says: `${name} at least ${atLeast} × ${peer}`,
    figure: rateTo(name, peer),
    atLeast,
  });
  const cost = (name: string, key: "node" | "server", atMost: number) => ({
    says: `${name} at most ${atMost} µs in ${key === "node" ? "Node" : "the server"}`,
    figure: (find: Find) => find(name, key),
    atMost,
  });
  return [
    { ...postgres, ...ratio("curfew drop", "graphile-worker", 1.5) },
    { ...postgres, ...ratio("curfew keep", "graphile-worker", 1.2) },
    { ...postgres, ...ratio("curfew drop", "raw SQL", 0.65) },
    { ...postgres, ...cost("curfew drop", "server", 20) },
    { ...postgres, ...cost("curfew keep", "server", 32) },
    { ...postgres, ...cost("curfew drop", "node", 13) },
    { ...sqlite, ...ratio("curfew drop", "plainjob", 10.6) },
    { ...sqlite, ...ratio("curfew keep", "plainjob", 10) },
  ];
}

/** The same goal for both databases, without a peer. */
function ownGoals(goal: Omit<Goal, "database" | "figure"> & { readonly key: string }): Goal[] {
  return (["postgres", "sqlite"] as const).map((database) => ({
    ...goal,
    database,
    figure: (find) => find("curfew drop", goal.key),
  }));
}

const pickedUp = (key: "p50" | "p99", most: number): Goal => ({
  workload: "pickup",
  database: "postgres",
  says: `${key} at most ${most} × graphile-worker's`,
  figure: (find) => find("curfew drop", key) / find("graphile-worker", key),
  atMost: most,
});

const GOALS: readonly Goal[] = [
  {
    workload: "bulk",
    database: "postgres",
    says: "at least 1.5 × the best peer",
    figure: rateTo("curfew drop", "graphile-worker", "pg-boss"),
    atLeast: 1.5,
  },
  {
    workload: "bulk",
    database: "sqlite",
    says: "at least plainjob's",
    figure: rateTo("curfew drop", "plainjob"),
    atLeast: 1,
  },
  {
    workload: "single",
    database: "postgres",
    says: "at least 10 × the best peer",
    figure: rateTo("curfew drop", "graphile-worker", "pg-boss"),
    atLeast: 10,
  },
  {
    workload: "single",
    database: "sqlite",
    says: "at least plainjob's",
    figure: rateTo("curfew drop", "plainjob"),
    atLeast: 1,
  },
  ...drain(10),
  ...drain(100),
  pickedUp("p50", 0.7),
  pickedUp("p99", 1),
  ...ownGoals({ workload: "delayed", says: "p99 below 15 ms", key: "p99", atMost: 15 }),
  ...ownGoals({ workload: "beside", says: "at least 90 % of the empty queue's", key: "kept", atLeast: 90 }),
  ...ownGoals({
    workload: "recovery",
    says: "within the heartbeat timeout (1 s) + backoff (none) + 1 s",
    key: "again",
    atMost: 2_000,
  }),
];

/** How a goal stands on one server. */
export interface JudgedGoal {
  readonly server: string;
  readonly says: string;
  readonly figure: number;
  readonly isMet: boolean;
}

/** The goals of a workload on each server; those that cannot be judged by these rows are left out. */
export function judgedGoals(workload: string, rows: readonly Row[]): JudgedGoal[] {
  const goals = GOALS.filter((goal) => goal.workload === workload);
  return [...new Set(rows.map(({ server }) => server))].flatMap((server) => {
    const own = rows.filter((row) => row.server === server);
    const find: Find = (name, key) => {
      const row = own.find((each) => each.name === name);
      return row ? medianOf(row, key) : Number.NaN;
    };
    return goals
      .filter(({ database }) => database === own[0]?.database)
      .map((goal) => judged(server, goal, goal.figure(find)))
      .filter(({ figure }) => !Number.isNaN(figure));
  });
}

function judged(server: string, { says, atLeast, atMost }: Goal, figure: number): JudgedGoal {
  const isMet = figure >= (atLeast ?? -Infinity) && figure <= (atMost ?? Infinity);
  return { server, says, figure, isMet };
}

/** The goals of a workload as lines of text. */
export function goalsOf(workload: string, rows: readonly Row[]): string[] {
  return judgedGoals(workload, rows).map(
    ({ server, says, figure, isMet }) =>
      `- ${server}: ${says}: ${figure.toFixed(2)}, ${isMet ? "met" : "**missed**"}`,
  );
}
