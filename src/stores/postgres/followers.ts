import type { NewEvent } from "../../core/event/new-event.ts";
import { UUID } from "../../core/ids.ts";
import type { JobId } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import { type Effect, LOG_LIMIT } from "../../ports/store.ts";
import { admissionsLast } from "../admissions.ts";
import { eventRow } from "../sql/event-pack.ts";
import { idArray, jsonTexts, numberArray } from "./array-literal.ts";
import { enqueueWith } from "./enqueue.ts";
import type { HintBatch } from "./hints.ts";
import { admit, spend } from "./key-limits.ts";
import type { Runner } from "./session.ts";
import { ADD_EVENTS, ADD_LOGS, COUNT_DOWN } from "./statements.ts";

/** Where units are committed: on the store's connections, or in a caller's transaction. */
export interface CommitScope extends Runner {
  /** All or nothing. Repeated if the server asks for it, unless that would repeat a caller's work too. */
  atomically<Result>(work: (session: Runner) => Promise<Result>): Promise<Result>;
}

/** Effects that need no answer and cannot fail, so that those of many units can be written together. */
export type Follower =
  | Note
  | Extract<Effect, { enqueue: unknown } | { countdown: unknown } | { admit: unknown } | { spend: unknown }>
  | Extract<Effect, { ready: unknown }>;
type Note = Extract<Effect, { event: unknown } | { log: unknown }>;
type LogLine = Extract<Effect, { log: unknown }>;

export function isFollower(effect: Effect): effect is Follower {
  const isNote = "event" in effect || "log" in effect;
  return isNote || "enqueue" in effect || "countdown" in effect || isAdmission(effect);
}

/** Effects on limits. They may be applied after other jobs are written. */
function isAdmission(effect: Effect): boolean {
  return "admit" in effect || "spend" in effect || "ready" in effect;
}

/** Applies the followers of a set of writes: one statement per kind. Adds their events to `recorded`. */
export async function follow(
  session: Runner,
  effects: readonly Follower[],
  now: Instant,
  hints: HintBatch,
  recorded: NewEvent[],
): Promise<void> {
  const jobs = effects.flatMap((effect) => ("enqueue" in effect ? [effect.enqueue] : []));
  const answers = jobs.length > 0 ? await enqueueWith(session, jobs, hints) : [];
  let next = 0;
  for (const effect of effects) {
    if ("event" in effect) recorded.push(effect);
    else if ("enqueue" in effect && answers[next++] === "created" && effect.enqueue.records)
      recorded.push(effect.enqueue.records);
  }
  await countDown(
    session,
    effects.flatMap((effect) => ("countdown" in effect ? [effect.countdown] : [])),
    now,
  );
  await addLogs(
    session,
    effects.filter((effect) => "log" in effect),
  );
  if (effects.some(isAdmission)) await admitWaiting(session, effects, now, hints);
}

async function admitWaiting(
  session: Runner,
  effects: readonly Follower[],
  now: Instant,
  hints: HintBatch,
): Promise<void> {
  await spend(
    session,
    effects.filter((effect) => "spend" in effect),
    now,
  );
  for (const effect of admissionsLast(effects)) {
    if ("ready" in effect) hints.ready(effect.ready);
    else if ("admit" in effect) await admit(session, effect, hints);
  }
}

/** Records the events of a transaction as one row. */
export async function addEvents(session: Runner, recorded: readonly NewEvent[], now: Instant): Promise<void> {
  if (recorded.length > 0) await session.run(ADD_EVENTS, [now, eventRow(recorded)]);
}

async function countDown(session: Runner, ids: readonly JobId[], now: Instant): Promise<void> {
  const counts = new Map<JobId, number>();
  for (const id of ids) if (UUID.test(id)) counts.set(id, (counts.get(id) ?? 0) + 1);
  if (counts.size === 0) return;
  const sorted = [...counts].sort(([a], [b]) => (a < b ? -1 : 1));
  const values = [idArray(sorted.map(([id]) => id)), numberArray(sorted, ([, count]) => count), now];
  await session.run(COUNT_DOWN, values);
}

async function addLogs(session: Runner, lines: readonly LogLine[]): Promise<void> {
  const logs = lines.filter(({ job }) => UUID.test(job));
  if (logs.length > 0) {
    const jobs = idArray(logs.map(({ job }) => job));
    await session.run(ADD_LOGS, [jobs, jsonTexts(logs, ({ log }) => JSON.stringify(log)), LOG_LIMIT]);
  }
}
