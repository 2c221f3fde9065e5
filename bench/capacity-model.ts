/**
 * What a store on Redis or Valkey takes at a given rate: masters, homes, processes, memory, connections. Every cost was
 * measured on two shared cores; what is made of them is extrapolated. docs/scale.md says where each is from.
 */
export const COSTS = {
  /** CPU of a master in µs per job: docs/benchmarks.md, Redis and Valkey. */
  enqueue: 10.1,
  drain: 33,
  /** CPU of a master in µs, by `npm run bench:capacity -- --measure`. A sweep that finds nothing costs as much as a look. */
  emptyLook: 23,
  emptyClaim: 21,
  hintPerSubscriber: 0.76,
  /** CPU of a process in µs per job, without the handler; bytes in and out of the master per job: the same command. */
  processPerJob: 67,
  wirePerJob: 560,
  /** Bytes of memory: docs/guides/redis.md. */
  delayed: 730,
  kept: 820,
} as const;

/** A look per process and home this often, in seconds (engine/lookout.ts). */
const LOOK_EVERY = 1.375;
/** How busy a master may be: beyond it, waiting times grow steeply. */
export const BUSY = 0.6;
/** Jobs that one call carries under load. */
const PER_CALL = 100;
const HOMES_PER_MASTER = 2;
/** Connections of a process to one master: calls, and hints. */
const CONNECTIONS = 2;
const MASTER_MEMORY = 64e9;
/** Jobs per second that one process runs at most: one core. */
const PROCESS_BUSY = 0.7;

export interface Demand {
  readonly jobsPerSecond: number;
  /** Finished jobs are kept for this many seconds. */
  readonly keptFor: number;
  readonly delayed: number;
  /** Left out: as few as the rate takes. */
  readonly processes?: number;
}

export interface Capacity extends Demand {
  readonly processes: number;
  readonly masters: number;
  readonly homes: number;
  /** What decided the number of masters. */
  readonly first: "CPU" | "memory";
  readonly memory: number;
  /** Of a core of each master, in parts. */
  readonly work: number;
  readonly looks: number;
  readonly hints: number;
  readonly connectionsPerMaster: number;
  readonly wirePerMaster: number;
}

/** The smallest number of masters that carries the demand. */
export function capacityFor(demand: Demand): Capacity {
  const processes =
    demand.processes ??
    Math.max(1, Math.ceil((demand.jobsPerSecond * COSTS.processPerJob) / (1e6 * PROCESS_BUSY)));
  const memory = demand.delayed * COSTS.delayed + demand.jobsPerSecond * demand.keptFor * COSTS.kept;
  const byMemory = Math.max(1, Math.ceil(memory / MASTER_MEMORY));
  for (let masters = byMemory; ; masters++) {
    const load = loadOf(demand.jobsPerSecond, processes, masters);
    const sum = load.work + load.looks + load.hints;
    if (sum > BUSY && masters < 4_096 / HOMES_PER_MASTER) continue;
    return {
      ...demand,
      ...load,
      processes,
      masters,
      homes: masters === 1 ? 1 : HOMES_PER_MASTER * masters,
      first: masters === byMemory && byMemory > 1 ? "memory" : "CPU",
      memory,
      connectionsPerMaster: CONNECTIONS * processes,
      wirePerMaster: (demand.jobsPerSecond * COSTS.wirePerJob) / masters,
    };
  }
}

/** The parts of a core that each master spends on jobs, on looks and on hints. */
function loadOf(
  rate: number,
  processes: number,
  masters: number,
): Pick<Capacity, "work" | "looks" | "hints"> {
  const homes = masters === 1 ? 1 : HOMES_PER_MASTER;
  // Enqueues and verdicts that make jobs available or done publish one message per call to every process.
  const messages = (2 * rate) / PER_CALL / masters;
  return {
    work: (rate * (COSTS.enqueue + COSTS.drain)) / 1e6 / masters,
    looks: (processes * homes * COSTS.emptyLook) / LOOK_EVERY / 1e6,
    hints: (messages * processes * COSTS.hintPerSubscriber) / 1e6,
  };
}

const SIZES: readonly (readonly [string, Demand])[] = [
  ["10,000 jobs/s, kept for 10 min", { jobsPerSecond: 10_000, keptFor: 600, delayed: 0 }],
  ["100,000 jobs/s, kept for 10 min", { jobsPerSecond: 100_000, keptFor: 600, delayed: 0 }],
  ["the same, 10,000 processes", { jobsPerSecond: 100_000, keptFor: 600, delayed: 0, processes: 10_000 }],
  ["1,000,000 jobs/s, kept for 1 min", { jobsPerSecond: 1_000_000, keptFor: 60, delayed: 0 }],
  ["the same, 10,000 processes", { jobsPerSecond: 1_000_000, keptFor: 60, delayed: 0, processes: 10_000 }],
  [
    "10,000,000,000 delayed, 100,000 jobs/s, kept for 10 min",
    { jobsPerSecond: 100_000, keptFor: 600, delayed: 1e10 },
  ],
];

/** The table of docs/scale.md. */
export function capacityTable(): string {
  const rows = SIZES.map(([name, demand]) => {
    const found = capacityFor(demand);
    return [
      name,
      found.masters,
      found.homes,
      found.first,
      found.processes.toLocaleString("en"),
      gigabytes(found.memory),
      `${percent(found.work)}, ${percent(found.looks)}, ${percent(found.hints)}`,
      found.connectionsPerMaster.toLocaleString("en"),
      `${Math.round(found.wirePerMaster / 1e6)} MB/s`,
    ];
  });
  const head = [
    "demand",
    "masters",
    "homes",
    "decided by",
    "processes",
    "memory",
    "a master's core: jobs, looks, hints",
    "connections a master",
    "wire a master",
  ];
  const line = (cells: readonly unknown[]) => `| ${cells.join(" | ")} |`;
  const align = head.map((_, index) => (index === 0 || index === 3 || index === 6 ? "---" : "---:"));
  return [line(head), `|${align.join("|")}|`, ...rows.map(line)].join("\n");
}

function percent(share: number): string {
  return `${(100 * share).toFixed(share < 0.01 ? 1 : 0)} %`;
}

function gigabytes(bytes: number): string {
  return bytes >= 1e12 ? `${(bytes / 1e12).toFixed(1)} TB` : `${Math.round(bytes / 1e9)} GB`;
}
