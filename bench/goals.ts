import { medianOf, type Row } from "./report.ts";

/** What curfew wants to reach, as a ratio to a peer or as a figure. */
interface Goal {
  readonly workload: string;
  readonly says: string;
  /** The figure, and whether it is good enough; NaN where somebody it needs was not measured. */
  reached(find: Find): { figure: number; isMet: boolean };
}

/** The median of a column: `find("postgres", "curfew drop", "rate")`. */
type Find = (database: Row["database"], name: string, key: string) => number;

function atLeast(figure: number, wanted: number) {
  return { figure, isMet: figure >= wanted };
}

function atMost(figure: number, wanted: number) {
  return { figure, isMet: figure <= wanted };
}

function bulk(find: Find) {
  const best = Math.max(find("postgres", "graphile-worker", "rate"), find("postgres", "pg-boss", "rate"));
  return find("postgres", "curfew drop", "rate") / best;
}

function drain(concurrency: number): Goal[] {
  const workload = `drain-${concurrency}`;
  const ratio = (find: Find, retention: "drop" | "keep") =>
    find("postgres", `curfew ${retention}`, "rate") / find("postgres", "graphile-worker", "rate");
  return [
    {
      workload,
      says: "PostgreSQL, dropped: at least 1.4 × graphile-worker",
      reached: (find) => atLeast(ratio(find, "drop"), 1.4),
    },
    {
      workload,
      says: "PostgreSQL, kept: at least 1.1 × graphile-worker",
      reached: (find) => atLeast(ratio(find, "keep"), 1.1),
    },
    {
      workload,
      says: "SQLite, dropped: at least 5 × plainjob",
      reached: (find) =>
        atLeast(find("sqlite", "curfew drop", "rate") / find("sqlite", "plainjob", "rate"), 5),
    },
    {
      workload,
      says: "SQLite, kept: at least 5 × plainjob",
      reached: (find) =>
        atLeast(find("sqlite", "curfew keep", "rate") / find("sqlite", "plainjob", "rate"), 5),
    },
  ];
}

function pickup(key: "p50" | "p99"): Goal {
  return {
    workload: "pickup",
    says: `PostgreSQL ${key}: at most graphile-worker's`,
    reached: (find) =>
      atMost(find("postgres", "curfew drop", key) / find("postgres", "graphile-worker", key), 1),
  };
}

/** The same goal for both databases, without a peer. */
function ownGoals(
  workload: string,
  says: string,
  key: string,
  reach: (figure: number) => ReturnType<Goal["reached"]>,
): Goal[] {
  return (["postgres", "sqlite"] as const).map((database) => ({
    workload,
    says: `${database === "postgres" ? "PostgreSQL" : "SQLite"}: ${says}`,
    reached: (find) => reach(find(database, "curfew drop", key)),
  }));
}

const GOALS: readonly Goal[] = [
  {
    workload: "bulk",
    says: "PostgreSQL: at least 1.3 × the best peer",
    reached: (find) => atLeast(bulk(find), 1.3),
  },
  {
    workload: "single",
    says: "PostgreSQL: at least 10 × the best peer",
    reached: (find) => atLeast(bulk(find), 10),
  },
  {
    workload: "single",
    says: "SQLite: at least plainjob's",
    reached: (find) => atLeast(find("sqlite", "curfew drop", "rate") / find("sqlite", "plainjob", "rate"), 1),
  },
  ...drain(10),
  ...drain(100),
  pickup("p50"),
  pickup("p99"),
  ...ownGoals("delayed", "p99 below 20 ms", "p99", (figure) => atMost(figure, 20)),
  ...ownGoals("beside", "at least 90 % of the empty queue's", "kept", (figure) => atLeast(figure, 90)),
  ...ownGoals("recovery", "within the heartbeat timeout (1 s) + backoff (none) + 1 s", "again", (figure) =>
    atMost(figure, 2_000),
  ),
];

/** The goals of a workload as lines of text; those that cannot be judged by these rows are left out. */
export function goalsOf(workload: string, rows: readonly Row[]): string[] {
  const find: Find = (database, name, key) => {
    const row = rows.find((each) => each.database === database && each.name === name);
    return row ? medianOf(row, key) : Number.NaN;
  };
  return GOALS.filter((goal) => goal.workload === workload).flatMap(({ says, reached }) => {
    const { figure, isMet } = reached(find);
    return Number.isNaN(figure) ? [] : [`- ${says}: ${figure.toFixed(2)}, ${isMet ? "met" : "**missed**"}`];
  });
}
