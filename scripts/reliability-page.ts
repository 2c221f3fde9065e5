/** Makes docs/reliability.md from the results of long runs in docs/reliability/*.json. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  COMMITS_REGRESSION_SEEDS,
  DISTANT_REGRESSION_SEEDS,
  FAIR_HOME_REGRESSION_SEEDS,
  FAIR_REGRESSION_SEEDS,
  HOME_REGRESSION_SEEDS,
  OUTBOX_REGRESSION_SEEDS,
  REGRESSION_SEEDS,
  SAGA_REGRESSION_SEEDS,
  WORKFLOW_REGRESSION_SEEDS,
} from "../test/sim/regression-seeds.ts";
import { LANES, type Lane, type LaneFile, type RunReport } from "../test/support/run-report.ts";
import { MENDED_FINDINGS } from "./mended-findings.ts";

/** The seeds of each world that once broke a rule. */
const SEEDS = [
  ["jobs", REGRESSION_SEEDS],
  ["distant", DISTANT_REGRESSION_SEEDS],
  ["commits", COMMITS_REGRESSION_SEEDS],
  ["fair", FAIR_REGRESSION_SEEDS],
  ["fair-homes", FAIR_HOME_REGRESSION_SEEDS],
  ["workflows", WORKFLOW_REGRESSION_SEEDS],
  ["sagas", SAGA_REGRESSION_SEEDS],
  ["homes", HOME_REGRESSION_SEEDS],
  ["outbox", OUTBOX_REGRESSION_SEEDS],
] as const;

interface LaneText {
  readonly title: string;
  /** What is done, in plain words. */
  readonly tried: string;
  /** What had to hold. */
  readonly rule: string;
  readonly notCovered: string;
  /** The command that repeats it. */
  readonly repeat: string;
  /** The first column: what a row of the table is about. */
  readonly on: string;
  /** The other columns: names of counts that are added up, and their headings. */
  readonly counts: { readonly [name: string]: string };
  /** Columns of which the largest value counts. */
  readonly worst?: { readonly [name: string]: string };
}

const TEXTS: { readonly [Name in Lane]: LaneText } = {
  simulator: {
    title: "Simulated worlds",
    tried:
      "The real engine runs in several simulated processes on virtual time, on the store in memory. A seed draws the jobs and the faults: processes that crash or stand still, calls to the store that are slow, dropped, or done without an answer, wall clocks that jump, hints that are lost or come twice, jobs that kill their process, and handlers that throw, hang or ignore their signal. In the world `distant` some processes are 50 to 500 ms away from the store, and in `commits` each of them may have two commits under way as well. The worlds `workflows`, `sagas`, `timeouts` and `crons` do the same to these features. The same seed gives the same run.",
    rule: "A checker outside of the engine watches the store and the handlers: no deadline fires early, fences only grow, an ended job stays as it is, no job is lost, everything settles, limits are kept, every commit is announced once, and a closed engine leaves no timer. Mutants prove that the checker sees a violation: `npm test` plants defects and fails if no rule catches them.",
    notCovered:
      "SQL and the disk: these worlds use the store in memory. The chaos and failover runs below use the real ones.",
    repeat: "npm run sim -- --world all --seeds 200000 --from 1200000000 --report-folder docs/reliability",
    on: "world",
    counts: {
      seeds: "seeds",
      units: "jobs, workflows, steps, timeouts or firings",
      events: "scheduler events",
    },
  },
  chaos: {
    title: "Real processes that are killed",
    tried:
      "Jobs are enqueued while three worker processes run them. A random worker is killed with SIGKILL every few seconds. Another one is stopped with SIGSTOP for 12 s, which is past its lease, and then continues. On PostgreSQL all connections are ended every few seconds, and every third time the server itself is killed with SIGKILL and started again. Handlers are quick, slow, throw twice, or hang until their timeout.",
    rule: "A ledger outside the store has the ids that were acknowledged and every entry into a handler. Afterwards every acknowledged job is there, has one verdict from the last attempt that was entered, and the recorded events say the same. A follower that ran all the time has seen all events once and in order.",
    notCovered:
      "A loss of power: the machine itself stays up, so what the kernel has is not lost. Full disks and broken disks are not part of this run.",
    repeat: "npm run chaos -- --store sqlite --minutes 60",
    on: "store",
    counts: {
      acknowledged: "jobs acknowledged",
      kills: "workers killed",
      stops: "workers stopped",
      storeHurts: "store hurt",
      entries: "handlers entered",
      events: "events",
      lost: "jobs lost",
      doubled: "double verdicts",
    },
  },
  failover: {
    title: "PostgreSQL that fails over",
    tried:
      "A primary with a standby is lost again and again while eight producers enqueue and a worker on a pool of its own runs the jobs: its processes are killed, it is stopped in order, or its machine vanishes without closing a connection. The standby is promoted, and the old primary is rebuilt as the next standby.",
    rule: "A ledger outside the store has what was acknowledged. With a synchronous standby nothing acknowledged is lost. With either kind no job has two verdicts, every job that is there ends, and a follower misses no event of the new primary. Jobs run again at most 2 s after the promotion, 10 s for a machine that vanished.",
    notCovered:
      "With an **asynchronous** standby PostgreSQL acknowledges commits that the standby may not have. What the old primary acknowledged in the moment of its loss is gone after the promotion; the table says how many jobs that were. curfew cannot prevent it: set `synchronous_standby_names` if acknowledged jobs must survive the loss of a machine. Networks that are split so that two primaries take writes are not tried.",
    repeat: "npm run test:failover -- --promotions 50 --jobs 100000",
    on: "cluster",
    counts: {
      promotions: "promotions",
      acknowledged: "jobs acknowledged",
      lost: "jobs lost",
      doubled: "double verdicts",
      missedEvents: "events missed",
    },
    worst: {
      crash: "longest outage after a crash, ms",
      switchover: "after a switchover, ms",
      vanish: "after a machine vanished, ms",
    },
  },
  cluster: {
    title: "A cluster that loses nodes",
    tried:
      "Three masters with two replicas each, eight producers and a worker. The master that has the jobs is killed with SIGKILL again and again. In between, a master loses the links to its replicas for half a second and then dies, a master or a replica stands still for 4 s (SIGSTOP), slots with jobs move to another master, a fourth master comes, takes slots, gives them back and leaves, and a master has no memory left.",
    rule: "A ledger outside the store has what was acknowledged, which handlers were entered and how jobs ended. With `replicated` nothing acknowledged is lost. The journal is the history that survived, because a verdict and its event are one write: it has exactly one verdict of every job that completed, and none of any other. A verdict that was accepted and is not in it was accepted before a failover and under another claim than the one that is there; only `local` may take one back so. Every job that is there ends. How long it takes until jobs are acknowledged again is measured, and by the logs of the servers divided into their election and the client's part.",
    notCovered:
      "With **local** durability the newest writes may not have reached a replica when their master dies: jobs that were acknowledged then are gone, and jobs that ended then run and end again. The table says how many that were. Nearly all of them are from masters whose links were cut before. Networks that are split so that two masters take writes for the same slots are not tried: Redis ends the old one after its node timeout, and what it acknowledged meanwhile is gone. The nodes share one machine.",
    repeat: "npm run test:cluster -- --kills 50 --jobs 100000",
    on: "cluster",
    counts: {
      faults: "faults",
      acknowledged: "jobs acknowledged",
      lost: "jobs lost",
      takenBack: "verdicts taken back",
      doubled: "double verdicts",
      repeated: "jobs run again",
    },
    worst: {
      kill: "acknowledged again after a kill, ms",
      cut: "after cut links and a kill, ms",
      stop: "after a standstill, ms",
      elected: "after a death: another master elected, ms",
      own: "from then to the first write, ms",
      verdict: "to the first verdict, ms",
    },
  },
  attack: {
    title: "Attacks on the server",
    tried:
      "Each request of up to 1 MB tries another way to cost more than its size: combining marks, very many keys, deep nesting, long lists, long texts and numbers. Floods fill the store with large jobs, notes, labels and log lines and then ask for them, or follow all events at once.",
    rule: "No request blocks the event loop for more than 50 ms of CPU. The server process stays under 512 MB in every flood. No single request is answered with a status of 500 or more.",
    notCovered: "Many machines at once: a rate limit or a proxy in front of the server has to stop those.",
    repeat: "npm run attack -- --store sqlite --scale 3",
    on: "store",
    counts: { requests: "requests", floods: "floods" },
    worst: { blocked: "longest block, ms", memory: "most memory, MB" },
  },
  fuzz: {
    title: "Strange requests",
    tried:
      "Requests are drawn from a seed: valid ones that are changed at random, wrong types, strange texts, cut bodies, and raw bytes over a socket.",
    rule: "Every request is answered, none with a failure of the server, and each reply names its request and shows nothing of the code. The server is well afterwards. In process, the live heap does not grow once the store is emptied.",
    notCovered:
      "Whether a reply is the right one: that is for the other tests. Load: requests come a few dozen at a time.",
    repeat: "npm run fuzz -- --requests 1000000 --seed 1",
    on: "store",
    counts: { requests: "requests" },
    worst: { growth: "most growth of the live heap, MB" },
  },
  webhooks: {
    title: "Endpoints that misbehave",
    tried:
      "Jobs are enqueued at a steady rate, and each causes five deliveries: three in order, one plain and one in a batch. One call in five fails, hangs, is closed or redirected, and some answers are huge, endless or garbage; two further endpoints never answer. A server without webhooks gets the same jobs in turn, for the time of an enqueue.",
    rule: "Every event reaches its endpoint, those of an ordered subscription in the order of the journal, and what an endpoint never takes waits or is a dead letter.",
    notCovered:
      "Endpoints far away, and TLS: they are on the same machine, without it. The time of an enqueue is for a quiet machine to say.",
    repeat: "npm run test:webhooks -- --deliveries 50000 --store postgres",
    on: "store",
    counts: {
      deliveries: "deliveries",
      spoiled: "calls spoiled",
      lost: "lost",
      outOfOrder: "jobs out of order",
      repeated: "delivered twice",
    },
    worst: {
      p99: "p99 of enqueues, ms",
      without: "without webhooks, ms",
    },
  },
  postgres: {
    title: "Versions of PostgreSQL",
    tried:
      "The conformance kit of stores and all tests of the PostgreSQL store and its migrations run on each supported version, with durability as in production.",
    rule: "All tests pass.",
    notCovered: "Managed services and forks of PostgreSQL.",
    repeat: "npm run test:postgres -- 15",
    on: "version",
    counts: { tests: "tests passed" },
  },
};

const PROMISED = [
  ["An acknowledged job is never lost, and ends", "simulator, chaos, failover"],
  ["A job has exactly one verdict; a late one is refused", "simulator, chaos, failover"],
  ["No deadline fires early, on any machine's clock", "simulator"],
  ["A timeout is enforced, also if a worker is gone or its loop is blocked", "simulator, chaos"],
  ["Limits and rates hold over all processes and crashes", "simulator"],
  ["Recorded events match what happened, and followers miss none", "simulator, chaos, failover"],
  ["One request cannot stop a server, and its memory is bounded", "attack, fuzz"],
  ["An event reaches its webhook at least once, in order where asked", "webhooks"],
] as const;

const NOT_PROMISED = [
  "A handler may run more than once: if its worker is lost, nobody knows how far it came. Effects outside the store have to be idempotent.",
  "With an asynchronous standby, or `synchronous_commit = off`, PostgreSQL may lose what it acknowledged.",
  "A disk that does not keep what it has synced, and files of a store that other programs change, are outside of what a store can guard. SQLite on a network file system is not supported.",
  "A handler in the worker's own process cannot be ended by force; only a sandbox can.",
  "The store in memory loses everything with its process.",
] as const;

/** The whole page. `folder` has the results. */
export function reliabilityPage(folder: string): string {
  const runs = readRuns(folder);
  const sections = [
    promises(),
    ...LANES.map((lane) => section(lane, runs.get(lane) ?? [])),
    mended(),
    limits(),
  ];
  return `# Reliability

<!-- Generated from docs/reliability/*.json by \`npm run docs\`. Change scripts/reliability-page.ts, not this file. -->

What is promised, how it was tried, what was found, and what is not promised. The numbers are added up from result files that the
runs wrote themselves, in [docs/reliability](reliability). Runs that wrote none are not counted. Each section has the command that repeats it; \`--report <file>\`
writes such a file. \`npm test\` has a short sample of each run except the failover.

${sections.join("\n")}`;
}

function readRuns(folder: string): Map<Lane, RunReport[]> {
  const runs = new Map<Lane, RunReport[]>();
  for (const name of readdirSync(folder).sort()) {
    if (!name.endsWith(".json")) continue;
    const file = JSON.parse(readFileSync(join(folder, name), "utf8")) as LaneFile;
    if (!LANES.includes(file.lane)) throw new Error(`${name}: its lane "${file.lane}" is unknown`);
    runs.set(file.lane, [...(runs.get(file.lane) ?? []), ...file.runs]);
  }
  return runs;
}

function promises(): string {
  const rows = PROMISED.map(([promise, lanes]) => `| ${promise} | ${lanes} |`);
  return `## What is promised\n\nThe [contract](semantics.md) has the exact words.\n\n| promise | tried by |\n|---|---|\n${rows.join("\n")}\n`;
}

function section(lane: Lane, runs: readonly RunReport[]): string {
  const { title, tried, rule, notCovered, repeat } = TEXTS[lane];
  return `## ${title}

**How it was tried.** ${tried}

**What must hold.** ${rule}

${runs.length === 0 ? "No results are kept.\n" : resultsOf(lane, runs)}
**What is not covered.** ${notCovered}

\`\`\`sh
${repeat}
\`\`\`
`;
}

function resultsOf(lane: Lane, runs: readonly RunReport[]): string {
  const { on, counts, worst = {} } = TEXTS[lane];
  const heads = [
    on,
    "runs",
    "minutes",
    ...Object.values(counts),
    ...Object.values(worst),
    "rules broken",
    "last run",
  ];
  const rows = [...Map.groupBy(runs, (run) => run.on)].map(([name, group]) => {
    const sum = (of: (run: RunReport) => number) => group.reduce((total, run) => total + of(run), 0);
    const most = (key: string) => Math.max(...group.map((run) => run.worst?.[key] ?? 0));
    const last = group
      .map(({ date, version }) => `${date}, ${version}`)
      .sort()
      .at(-1) as string;
    return [
      name,
      shown(group.length),
      shown(Math.round(sum(({ seconds }) => seconds) / 60)),
      ...Object.keys(counts).map((key) => shown(sum((run) => run.counts[key] ?? 0))),
      ...Object.keys(worst).map((key) => shown(most(key))),
      shown(sum(({ findings }) => findings.length)),
      last,
    ];
  });
  return `${[heads, heads.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n")}\n\n${findingsOf(runs)}`;
}

function findingsOf(runs: readonly RunReport[]): string {
  const broken = runs.flatMap((run) =>
    run.findings.map(
      (finding) => `- ${run.date}, \`${run.command}\`: ${finding.split("\n")[0]}${mendOf(run.on, finding)}`,
    ),
  );
  if (broken.length === 0) return "**What was found.** Nothing in these runs.\n";
  return `**What was found.**\n\n${broken.join("\n")}\n`;
}

/** How the cause of a finding was mended; the empty text if nothing says so. */
function mendOf(on: string, finding: string): string {
  const seed = /^seed (\d+) broke/.exec(finding)?.[1];
  const showed = SEEDS.find(([world]) => world === on)?.[1].find(([known]) => `${known}` === seed)?.[1];
  if (showed !== undefined) return `. **Mended**: ${showed}. The seed runs in every \`npm test\`.`;
  const how = MENDED_FINDINGS.find(([part]) => finding.includes(part))?.[1];
  return how === undefined ? "" : `. **Mended**: ${how}.`;
}

const shown = (value: number) => value.toLocaleString("en-US");

/** Seeds that once broke a rule stay in the tests, with what they showed. */
function mended(): string {
  const rows = SEEDS.flatMap(([world, seeds]) =>
    seeds.map(([seed, showed]) => `| ${world} | ${seed} | ${showed} |`),
  );
  return `## What was found and mended

Each of these seeds broke a rule once. The cause was mended, in the product or in the checker, and the seed runs in every
\`npm test\`. The [changelog](../CHANGELOG.md) has what reviews and the other runs found.

| world | seed | what it showed |
|---|---|---|
${rows.join("\n")}
`;
}

function limits(): string {
  return `## What is not promised\n\n${NOT_PROMISED.map((line) => `- ${line}`).join("\n")}\n`;
}
