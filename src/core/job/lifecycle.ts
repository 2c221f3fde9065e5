// tidy: table
import { JOB_STATES, type JobState, type Terminal } from "./job.ts";

/** Everything that can happen to a job. `wake`: the sweep found that the job's `wakeAt` has come. */
export const JOB_EVENTS = [
  "activate",
  "wake",
  "claim",
  "start",
  "succeed",
  "fail",
  "expire",
  "stall",
  "snooze",
  "release",
  "cancel",
  "drop",
  "extend",
  "retry",
  "unblock",
  "prioritise",
  "run",
  "reschedule",
] as const;

export type JobEventName = (typeof JOB_EVENTS)[number];

interface Transition {
  readonly from: JobState;
  readonly event: JobEventName;
  readonly to: readonly JobState[];
  readonly why: string;
}

/**
 * The whole lifecycle. `decide` refuses events that are not in it, and asserts that its results are.
 * docs/lifecycle.md is generated from it. Open Job Spec's tables leave out the transitions that end by time.
 */
export const LIFECYCLE: readonly Transition[] = [
  {
    from: "pending",
    event: "activate",
    to: ["available", "scheduled", "pending"],
    why: "activated; not due yet; its limit must admit it",
  },
  {
    from: "pending",
    event: "wake",
    to: ["available", "scheduled", "pending", "discarded"],
    why: "all it needs is done; its limit is reached; wait or total over",
  },
  {
    from: "scheduled",
    event: "wake",
    to: ["available", "scheduled", "pending", "discarded"],
    why: "due; its limit must admit it; wait or total over",
  },
  {
    from: "retryable",
    event: "wake",
    to: ["available", "retryable", "pending", "discarded"],
    why: "backoff over; its limit must admit it; total over",
  },
  { from: "available", event: "wake", to: ["available", "discarded"], why: "wait or total over" },
  {
    from: "active",
    event: "wake",
    to: ["active", "available", "retryable", "pending", "discarded"],
    why: "the claim expired before a start; hard deadline, stall or visibility timeout passed",
  },
  { from: "available", event: "claim", to: ["active"], why: "taken exclusively by a worker" },
  {
    from: "active",
    event: "start",
    to: ["active", "discarded"],
    why: "handler entered; wait or total over before it",
  },
  {
    from: "active",
    event: "succeed",
    to: ["completed", "retryable", "discarded"],
    why: "in time; or past the hard deadline",
  },
  { from: "active", event: "fail", to: ["retryable", "discarded"], why: "retry policy and budget decide" },
  { from: "active", event: "expire", to: ["retryable", "discarded"], why: "hard deadline reached" },
  {
    from: "active",
    event: "stall",
    to: ["retryable", "available", "pending", "discarded"],
    why: "no beat within the heartbeat or visibility timeout",
  },
  {
    from: "active",
    event: "snooze",
    to: ["scheduled", "retryable", "discarded"],
    why: "the handler asked for later; total too short; or past the hard deadline",
  },
  {
    from: "active",
    event: "release",
    to: ["available", "scheduled", "retryable", "pending", "discarded"],
    why: "released; later; later under a strict limit; its rate must admit the next start; too many returns",
  },
  ...(["scheduled", "available", "pending", "active", "retryable"] as const).flatMap((from): Transition[] => [
    { from, event: "cancel", to: ["cancelled"], why: "cancelled" },
    { from, event: "extend", to: [from], why: "limits changed" },
  ]),
  ...(["scheduled", "available", "pending", "retryable"] as const).flatMap((from): Transition[] => [
    { from, event: "prioritise", to: [from], why: "another priority" },
    { from, event: "drop", to: ["discarded"], why: "its queue is full" },
  ]),
  ...(["scheduled", "retryable"] as const).map(
    (from): Transition => ({
      from,
      event: "run",
      to: ["available", "pending", "discarded"],
      why: "run now; its limit must admit it; wait or total over",
    }),
  ),
  ...(["scheduled", "available", "retryable"] as const).map(
    (from): Transition => ({
      from,
      event: "reschedule",
      to: from === "available" ? ["scheduled", "available"] : [from, "available", "pending"],
      why: "due at another time; now; its limit must admit it",
    }),
  ),
  {
    from: "discarded",
    event: "retry",
    to: ["available", "pending"],
    why: "manual retry; its limit must admit it",
  },
  {
    from: "pending",
    event: "unblock",
    to: ["available", "scheduled", "pending", "discarded"],
    why: "all steps it depends on have ended; not due yet; its limit must admit it; their results are too large",
  },
];

const TERMINAL: ReadonlySet<JobState> = new Set<Terminal>(["completed", "cancelled", "discarded"]);

export function isTerminal(state: JobState): state is Terminal {
  return TERMINAL.has(state);
}

const TARGETS = new Map<string, readonly JobState[]>(
  LIFECYCLE.map(({ from, event, to }) => [`${from} ${event}`, to] as const),
);

/** The states that an event may lead to. Empty: the event is rejected in this state. */
export function targetsOf(state: JobState, event: JobEventName): readonly JobState[] {
  return TARGETS.get(`${state} ${event}`) ?? [];
}

/** Indexed access for the hot path. A string key per decision would be an allocation per job. */
export const ALLOWED: Readonly<Record<JobState, Readonly<Record<JobEventName, readonly JobState[]>>>> =
  Object.fromEntries(
    JOB_STATES.map((state) => [
      state,
      Object.fromEntries(JOB_EVENTS.map((event) => [event, targetsOf(state, event)])),
    ]),
  ) as unknown as Record<JobState, Record<JobEventName, readonly JobState[]>>;
