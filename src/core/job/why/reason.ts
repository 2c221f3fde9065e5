import type { Instant } from "../../time.ts";
import type { JobId, JobState } from "../job.ts";
import type { WhyCode } from "./codes.ts";

/** What to do about a reason. `wait`: nothing is wrong, and nothing needs to be done. */
export type WhyActionName =
  | "wait"
  | "activate"
  | "cancel"
  | "change-code"
  | "end-maintenance"
  | "extend"
  | "look-at-job"
  | "look-at-worker"
  | "look-at-workflow"
  | "raise-limit"
  | "resume-queue"
  | "retry"
  | "start-engine"
  | "start-worker";

export interface WhyAction {
  readonly name: WhyActionName;
  /** The target: the id of a job or worker, the name of a queue, the key of a limit. */
  readonly target: string | null;
  readonly text: string;
}

/** What a reason is about, to look at next. */
export interface WhyWho {
  readonly kind: "job" | "worker" | "queue" | "limit" | "workflow";
  readonly id: string;
}

/** One reason why a job does not run, does not end, or ended as it did. */
export interface WhyReason {
  readonly code: WhyCode;
  readonly sentence: string;
  readonly since: Instant | null;
  /** When it ends by itself; null if it does not, or if that is unknown. */
  readonly until: Instant | null;
  readonly who: WhyWho | null;
  /** The page of the documentation. */
  readonly link: string;
  readonly action: WhyAction;
}

/** Why a job does not run or does not end. Act on the first reason. */
export interface Why {
  readonly id: JobId;
  readonly state: JobState;
  /** The key of the limit that a pending job waits for; null if it waits for no limit. */
  readonly heldBy: string | null;
  /** When the question was asked. */
  readonly at: Instant;
  readonly reasons: readonly WhyReason[];
  toString(): string;
}

interface ReasonParts {
  readonly since?: Instant | null;
  readonly until?: Instant | null;
  readonly who?: WhyWho | null;
  readonly action: WhyAction;
}

const GUIDE = "docs/guides/troubleshooting.md";

export function reason(code: WhyCode, sentence: string, parts: ReasonParts): WhyReason {
  const { since = null, until = null, who = null, action } = parts;
  return { code, sentence, since, until, who, link: `${GUIDE}#${code}`, action };
}

export function act(name: WhyActionName, text: string, target: string | null = null): WhyAction {
  return { name, target, text };
}

export const WAIT = act("wait", "Nothing needs to be done.");

export function printWhy({ id, state, reasons }: Omit<Why, "toString">): string {
  const lines = reasons.map(
    ({ code, sentence, action }, index) => `${index + 1}. ${sentence} [${code}]\n   ${action.text}`,
  );
  return [`Job ${id} is ${state}.`, ...lines].join("\n");
}

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

/** A duration for people: its two largest units, such as `3m 20s`, or `850ms`. */
export function roughly(milliseconds: number): string {
  const span = Math.max(0, Math.round(milliseconds));
  const index = UNITS.findIndex(([, size]) => span >= size);
  const [unit, size] = UNITS[index] ?? ["ms", 1];
  const count = Math.floor(span / size);
  const finer = UNITS[index + 1];
  if (index < 0 || !finer) return `${count}${unit}`;
  const rest = Math.floor((span % size) / finer[1]);
  return rest === 0 ? `${count}${unit}` : `${count}${unit} ${rest}${finer[0]}`;
}

/** `1 job`, `2 jobs`. */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}
