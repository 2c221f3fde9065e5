// tidy: table
import { JOB_STATES, type JobState, type Terminal } from "./job.ts";

/** Everything that can happen to a job. `wake` is the sweep finding that the job's `wakeAt` has come. */
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
  "reach",
  "prioritise",
  "run",
] as const;

export type JobEventName = (typeof JOB_EVENTS)[number];

interface Transition {
  readonly from: JobState;
  readonly event: JobEventName;
  readonly to: readonly JobState[];
  readonly why: string;
}

/**
 * The whole lifecycle. `decide` refuses what is not in it and asserts that what it returns is;
 * docs/lifecycle.md is drawn from it. The transitions that end by time are the ones Open Job Spec's own
 * tables leave out.
 */
export const LIFECYCLE: readonly Transition[] = [
  {
    from: "pending",
    event: "activate",
    to: ["available", "scheduled", "pending"],
    why: "released by its owner; not due yet; to the limitKey of its limit",
  },
  {
    from: "pending",
    event: "wake",
    to: ["available", "scheduled", "pending", "discarded"],
    why: "needs met; its limit is reached; wait or total over",
  },
  {
    from: "scheduled",
    event: "wake",
    to: ["available", "scheduled", "pending", "discarded"],
    why: "due; to the limitKey of its limit; wait or total over",
  },
  {
    from: "retryable",
    event: "wake",
    to: ["available", "retryable", "pending", "discarded"],
    why: "backoff over; to the limitKey of its limit; total over",
  },
  { from: "available", event: "wake", to: ["available", "discarded"], why: "wait or total over" },
  {
    from: "active",
    event: "wake",
    to: ["active", "available", "retryable", "pending", "discarded"],
    why: "claim ran out unstarted; hard deadline, stall or visibility timeout passed",
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
    why: "given back; its next start needs room under a rate; too many returns",
  },
  ...(["scheduled", "available", "pending", "active", "retryable"] as const).flatMap((from): Transition[] => [
    { from, event: "cancel", to: ["cancelled"], why: "cancelled" },
    { from, event: "extend", to: [from], why: "limits changed" },
  ]),
  ...(["scheduled", "available", "pending", "retryable"] as const).flatMap((from): Transition[] => [
    { from, event: "prioritise", to: [from], why: "another place in its queue" },
    { from, event: "drop", to: ["discarded"], why: "its queue is full" },
  ]),
  ...(["scheduled", "retryable"] as const).map(
    (from): Transition => ({
      from,
      event: "run",
      to: ["available", "pending", "discarded"],
      why: "run now; to the limitKey of its limit; wait or total over",
    }),
  ),
  {
    from: "discarded",
    event: "retry",
    to: ["available", "pending"],
    why: "manual retry; to the limitKey of its limit",
  },
  {
    from: "pending",
    event: "reach",
    to: ["available", "scheduled", "pending", "discarded"],
    why: "its turn in a workflow has come; not due yet; behind a limitKey; the results for it are too large",
  },
];

const TERMINAL: ReadonlySet<JobState> = new Set<Terminal>(["completed", "cancelled", "discarded"]);

export function isTerminal(state: JobState): state is Terminal {
  return TERMINAL.has(state);
}

const TARGETS = new Map<string, readonly JobState[]>(
  LIFECYCLE.map(({ from, event, to }) => [`${from} ${event}`, to] as const),
);

/** The states an event may lead to; an empty list means that the event is rejected in this state. */
export function targetsOf(state: JobState, event: JobEventName): readonly JobState[] {
  return TARGETS.get(`${state} ${event}`) ?? [];
}

/** Indexed access for the hot path, where a string key per decision would be an allocation per job. */
export const ALLOWED: Readonly<Record<JobState, Readonly<Record<JobEventName, readonly JobState[]>>>> =
  Object.fromEntries(
    JOB_STATES.map((state) => [
      state,
      Object.fromEntries(JOB_EVENTS.map((event) => [event, targetsOf(state, event)])),
    ]),
  ) as unknown as Record<JobState, Record<JobEventName, readonly JobState[]>>;
