import type { NewEvent } from "../../core/event/new-event.ts";
import type { Decision } from "../../core/job/decision.ts";
import type { JobDocuments, JobRow } from "../../core/job/job.ts";
import type { Effect, JobWrite, Unit } from "../../ports/store.ts";
import { effectsOf } from "./decision-effects.ts";

export type Decided = Extract<Decision, { ok: true }>;

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/** What travels with a decision: documents that its own overrule, effects, and the word that its holder shall look. */
interface Extras {
  readonly documents?: JobDocuments | undefined;
  readonly effects?: readonly Effect[] | undefined;
  readonly notifyHolder?: boolean;
}

const NOTHING: Extras = {};

/**
 * The unit that commits what the holder of an attempt decided. A success that is kept needs no revision: nothing an
 * outsider may change about a running job would spoil it.
 */
export function holdersUnit(
  row: JobRow,
  decision: Decided,
  extras: Extras = NOTHING,
  recorded?: readonly NewEvent[],
): Unit {
  const isPlain = decision.image.state === "completed" && decision.drop === undefined;
  return withEvents(unitOf(row, decision, extras, !isPlain), recorded);
}

/** The unit that commits what somebody else decided: it holds only for the very row that was looked at. */
export function outsidersUnit(
  row: JobRow,
  decision: Decided,
  extras: Extras = NOTHING,
  recorded?: readonly NewEvent[],
): Unit {
  return withEvents(unitOf(row, decision, extras, true), recorded);
}

/** The unit together with what it tells, if events are recorded at all. */
export function withEvents(unit: Unit, recorded: readonly NewEvent[] | undefined): Unit {
  if (recorded === undefined || recorded.length === 0) return unit;
  return { ...unit, effects: unit.effects ? [...recorded, ...unit.effects] : recorded };
}

/** Written out, because every job comes through here twice and an object spread costs more than all of it. */
function unitOf(row: JobRow, decision: Decided, extras: Extras, namesRev: boolean): Unit {
  const { documents, fence, drop } = decision;
  const job: Mutable<JobWrite> = { id: row.id, fence: row.fence, image: decision.image };
  if (namesRev) job.rev = row.rev;
  if (extras.documents) job.documents = documents ? { ...extras.documents, ...documents } : extras.documents;
  else if (documents) job.documents = documents;
  if (fence !== undefined) job.nextFence = fence;
  if (extras.notifyHolder) job.notifyHolder = true;
  if (drop) job.drop = drop;
  const effects = allOf(extras.effects, effectsOf(row, decision));
  return effects && effects.length > 0 ? { job, effects } : { job };
}

function allOf(
  brought: readonly Effect[] | undefined,
  following: readonly Effect[] | undefined,
): readonly Effect[] | undefined {
  if (following === undefined) return brought;
  return brought === undefined ? following : [...brought, ...following];
}
