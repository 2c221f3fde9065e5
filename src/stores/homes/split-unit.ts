import { CurfewError } from "../../core/errors.ts";
import { type Cell, cellOfId, cellOfName, type Home, homeOf, SETTINGS_CELL } from "../../core/home/cell.ts";
import { cellOfRecord, cellOfSaga, cellOfTimeoutKey, isCopied } from "../../core/home/cell-of-row.ts";
import type { Effect, Guard, RecordKey, Unit } from "../../ports/store.ts";
import type { Which } from "../../ports/timeouts.ts";

/** A unit as its home commits it, and what has to reach other homes. */
export interface SplitUnit {
  readonly cell: Cell;
  readonly home: Home;
  readonly unit: Unit;
  /** Effects of other homes, in order. Empty for most units. */
  readonly foreign: ReadonlyMap<Home, readonly Effect[]>;
  /** Records of which every home has a copy. */
  readonly copies: readonly RecordKey[];
  /** Nothing joins its effects: those of other homes are applied there without a message. */
  readonly isLoose: boolean;
  /** For each `revoke` of the unit, whether it is applied in this home. */
  readonly revokes: readonly boolean[];
}

const NONE: ReadonlyMap<Home, readonly Effect[]> = new Map();

/** Where a unit belongs: the home of its job, else of its first guard, else of its first effect with a home. */
export function splitUnit(unit: Unit, homes: number): SplitUnit {
  const cell = cellOfUnit(unit);
  const home = homeOf(cell, homes);
  for (const guard of unit.when ?? [])
    if (homeOf(cellOfGuard(guard), homes) !== home) throw spanning(unit, guard);
  const effects = unit.effects ?? [];
  const isOwn = (effect: Effect) => homeOf(cellOfEffect(effect) ?? cell, homes) === home;
  const copies = effects.flatMap((effect) => copiedBy(effect));
  const revokes = effects.filter((effect) => "revoke" in effect).map(isOwn);
  if (effects.every(isOwn)) return { cell, home, unit, foreign: NONE, copies, revokes, isLoose: false };
  const foreign = new Map<Home, Effect[]>();
  for (const effect of effects) {
    if (isOwn(effect)) continue;
    const target = homeOf(cellOfEffect(effect) as Cell, homes);
    foreign.set(target, [...(foreign.get(target) ?? []), effect]);
  }
  return {
    cell,
    home,
    unit: { ...unit, effects: effects.filter(isOwn) },
    foreign,
    copies: home === 0 ? copies : [],
    isLoose: !unit.job && !unit.when?.length && effects.every((effect) => "admit" in effect),
    revokes,
  };
}

function cellOfUnit({ job, when, effects }: Unit): Cell {
  if (job) return cellOfId(job.id);
  const guard = when?.[0];
  if (guard) return cellOfGuard(guard);
  for (const effect of effects ?? []) {
    const cell = cellOfEffect(effect);
    if (cell !== undefined) return cell;
  }
  return SETTINGS_CELL;
}

function cellOfGuard(guard: Guard): Cell {
  if ("record" in guard) return cellOfRecord(guard.record);
  return cellOfId("timeout" in guard ? guard.timeout : guard.idle);
}

/** Undefined for an effect that is at home everywhere. */
function cellOfEffect(effect: Effect): Cell | undefined {
  if ("event" in effect || "ready" in effect) return undefined;
  if ("put" in effect) return cellOfRecord(effect.put);
  if ("enqueue" in effect) return cellOfId(effect.enqueue.id);
  if ("countdown" in effect) return cellOfId(effect.countdown);
  if ("delete" in effect) return cellOfRecord(effect.delete);
  if ("admit" in effect) return cellOfName(effect.admit);
  if ("spend" in effect) return cellOfName(effect.spend);
  if ("request" in effect) return cellOfId(effect.request.id);
  if ("revoke" in effect) return cellOfWhich(effect.revoke);
  return cellOfId("remove" in effect ? effect.remove : effect.job);
}

export function cellOfWhich(which: Which): Cell {
  if ("id" in which) return cellOfId(which.id);
  return "saga" in which ? cellOfSaga(which.saga) : cellOfTimeoutKey(which.destination, which.key);
}

function copiedBy(effect: Effect): RecordKey[] {
  const key = "put" in effect ? effect.put : "delete" in effect ? effect.delete : undefined;
  return key && isCopied(key) ? [key] : [];
}

function spanning({ job, when }: Unit, guard: Guard): CurfewError {
  const first = job ? `job ${job.id}` : JSON.stringify(when?.[0]);
  return new CurfewError(
    "invalid_state",
    `commit: the unit of ${first} also guards ${JSON.stringify(guard)}, which is in another home; guard rows of one home`,
  );
}
