import type {
  Advice,
  Doctor,
  Health,
  Maintenance,
  Queue,
  ServerConfig,
  Session,
  Worker,
} from "../../../ojs/replies/wire-replies.ts";
import { durationText, plural } from "../../ui/format.ts";

/** Something about the installation that somebody should know. */
export interface Finding {
  readonly id: string;
  readonly tone: "force" | "soft" | "wait";
  readonly title: string;
  /** What follows from it, and what helps. */
  readonly text: string;
  readonly to?: string;
}

export interface Inspected {
  readonly session: Session | undefined;
  /** What the doctor found, if this role may ask it. */
  readonly doctor: Doctor | undefined;
  readonly config: ServerConfig | undefined;
  readonly health: Health | undefined;
  readonly maintenance: Maintenance | undefined;
  readonly workers: readonly Worker[];
  readonly queues: readonly Queue[];
  readonly advice: readonly Advice[];
  /** The server's time minus this browser's. */
  readonly offset: number;
}

const SLOW_STORE = 100;
const CLOCKS_AGREE = 2_000;

/** What is wrong, the worst first. What could not be read is left out. */
export function findingsOf(seen: Inspected): Finding[] {
  const ofServer = seen.doctor
    ? doctorFindings(seen.doctor)
    : [...storeFindings(seen), ...workFindings(seen)];
  const found = [...ofServer, ...adviceFindings(seen), ...setupFindings(seen)];
  const order = ["force", "soft", "wait"];
  return found.sort((a, b) => order.indexOf(a.tone) - order.indexOf(b.tone));
}

const TONES = { error: "force", warning: "soft", note: "wait" } as const;

/** Pages on which a finding is acted on. */
const PAGES: Readonly<Record<string, string>> = {
  queue_paused: "queues",
  queue_without_worker: "queues",
  no_worker: "workers",
  worker_lost: "workers",
  worker_stuck: "workers",
  worker_failing: "workers",
  worker_blocked: "workers",
  sandbox_broken: "workers",
};

function doctorFindings({ findings }: Doctor): Finding[] {
  return findings.map(({ code, level, sentence, action }) => {
    const to = PAGES[code];
    return {
      id: code,
      tone: TONES[level],
      title: sentence.replace(/\.$/, ""),
      text: action,
      ...(to && { to }),
    };
  });
}

function storeFindings({ health, config }: Inspected): Finding[] {
  const found: Finding[] = [];
  if (health && health.status !== "healthy")
    found.push({
      id: "store",
      tone: "force",
      title: "The store does not answer",
      text: "Nothing is claimed and no verdict is written until it does. Look at the store first.",
    });
  else if (health && health.backend.latency_ms > SLOW_STORE)
    found.push({
      id: "slow",
      tone: "soft",
      title: `The store answers in ${durationText(health.backend.latency_ms)}`,
      text: "Claims and verdicts take at least that long. Under 10 ms is usual.",
    });
  if (config?.backend === "memory")
    found.push({
      id: "memory",
      tone: "wait",
      title: "Jobs are kept in memory",
      text: "They are gone when the server ends. Serve from a file or a database to keep them: curfew serve --store sqlite:jobs.db",
    });
  return found;
}

/** The first three of some names. */
function namesOf(names: readonly string[]): string {
  return `${names.slice(0, 3).join(", ")}${names.length > 3 ? " and others" : ""}.`;
}

function workFindings({ workers, queues, maintenance }: Inspected): Finding[] {
  const found: Finding[] = [];
  if (maintenance?.enabled)
    found.push({
      id: "maintenance",
      tone: "soft",
      title: "No job of any queue is handed out",
      text: `${maintenance.reason ?? "No reason was given"}. Deadlines run on.`,
    });
  const silent = workers.filter(({ state }) => state === "stale");
  if (silent.length > 0)
    found.push({
      id: "silent",
      tone: "soft",
      title: `${plural(silent.length, "worker is", "workers are")} silent`,
      text: `${silent
        .slice(0, 3)
        .map(({ id }) => id)
        .join(
          ", ",
        )}${silent.length > 3 ? " and others" : ""}. Their jobs are taken over when their heartbeat limits end.`,
      to: "workers",
    });
  const takes = (queue: string) =>
    workers.some(
      ({ queues: names, state }) => state === "running" && (names.length === 0 || names.includes(queue)),
    );
  const lonely = queues.filter(({ name, counts, paused }) => counts.available > 0 && !paused && !takes(name));
  if (lonely.length > 0)
    found.push({
      id: "lonely",
      tone: "force",
      title: `Nobody works on ${plural(lonely.length, "queue")}`,
      text: `Jobs wait in ${namesOf(lonely.map(({ name }) => name))}`,
      to: "queues",
    });
  return found;
}

function adviceFindings({ advice }: Inspected): Finding[] {
  const found: Finding[] = [];
  const tight = advice.filter(({ verdict }) => verdict === "raise");
  if (tight.length > 0)
    found.push({
      id: "tight",
      tone: "soft",
      title: `${plural(tight.length, "type has", "types have")} a limit that is too short`,
      text:
        tight.length === 1 ? `${tight[0]?.type}: ${tight[0]?.text}` : namesOf(tight.map(({ type }) => type)),
      to: "advice",
    });
  const held = advice.flatMap(({ holds }) => holds).filter(({ isWorkerGone }) => isWorkerGone);
  if (held.length > 0)
    found.push({
      id: "held",
      tone: "force",
      title: `${plural(held.length, "key is", "keys are")} held by jobs whose worker is gone`,
      text: "No limit ends these jobs. Cancel them to free their keys.",
      to: "advice",
    });
  return found;
}

function setupFindings({ config, session, offset }: Inspected): Finding[] {
  const found: Finding[] = [];
  if (Math.abs(offset) > CLOCKS_AGREE)
    found.push({
      id: "clock",
      tone: "soft",
      title: `This browser's clock is ${durationText(offset)} ${offset > 0 ? "behind" : "ahead of"} the server's`,
      text: "Countdowns here go by the server's clock, so they are right. Times that you compare with other programs may not be.",
    });
  if (config && !config.authentication && session?.authentication === "nobody")
    found.push({
      id: "keys",
      tone: "soft",
      title: "Every program on this machine may do anything here",
      text: "The server has no keys, so it answers this machine only. Before others use it, make a key: curfew keys new",
    });
  if (config && !config.events.recorded)
    found.push({
      id: "events",
      tone: "wait",
      title: "Events are not recorded",
      text: "The pages Events, Workers and the history of jobs stay empty.",
    });
  return found;
}
