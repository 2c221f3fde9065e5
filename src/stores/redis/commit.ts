import type { Fence } from "../../core/job/job.ts";
import type { KeyLimit } from "../../core/limit/limit.ts";
import type { Instant } from "../../core/time.ts";
import type { NewTimeout } from "../../core/timeout/timeout.ts";
import {
  type Effect,
  type Guard,
  type JobWrite,
  type Outcome,
  type Refused,
  startKey,
  startsOf,
  type Unit,
} from "../../ports/store.ts";
import type { Revoked, Which } from "../../ports/timeouts.ts";
import { admissionsLast } from "../admissions.ts";
import { checkUnits } from "../check-batch.ts";
import { batchesOf, textOfUnit } from "../sql/batches.ts";
import { stateOf } from "../sql/row-codec.ts";
import { cancelValues, timeoutValues } from "../sql/timeout-codec.ts";
import type { Packed } from "./codec.ts";
import { EventHeads } from "./event-heads.ts";
import { CALL_SIZE, type Home } from "./home.ts";
import { documentValues, imageValues, NewJobs } from "./row-codec.ts";

/** Commits units in order, as many calls as their size takes. */
export async function writeUnits(
  home: Home,
  units: readonly Unit[],
  { now, relaxed }: { readonly now: Instant; readonly relaxed?: boolean },
): Promise<Outcome[]> {
  home.assertOpen();
  checkUnits(units, now);
  const outcomes: Outcome[] = [];
  for (const batch of batchesOf(units, CALL_SIZE, textOfUnit)) {
    const heads = new EventHeads();
    const encoder = new UnitEncoder(heads);
    const list = batch.map((unit) => encoder.encode(unit));
    const value = [now, heads.text, list];
    const reader = await (relaxed ? home.call("commit", value) : home.write("commit", value));
    for (const answer of reader.read() as (null | number[])[]) outcomes.push(outcomeOf(answer));
  }
  return outcomes;
}

const REFUSALS = ["lost", "stale", "conflict", "lapsed", "gone"] as const;

function outcomeOf(answer: null | number[]): Outcome {
  if (answer === null) return { ok: true };
  const [first = 0, state, fence, rev] = answer;
  if (first < 0) {
    const because = REFUSALS[-first - 1] as Refused["because"];
    const at =
      state === undefined ? null : { state: stateOf(state), fence: fence as Fence, rev: rev as number };
    return { ok: false, because, at };
  }
  const revoked: Revoked[] = [];
  for (let at = 0; at < answer.length; at += 2)
    revoked.push({ pending: answer[at] as number, leased: answer[at + 1] as number });
  return { ok: true, revoked };
}

class UnitEncoder {
  readonly #heads: EventHeads;
  readonly #jobs: NewJobs;

  constructor(heads: EventHeads) {
    this.#heads = heads;
    this.#jobs = new NewJobs(heads);
  }

  encode({ job, when, effects }: Unit): Packed {
    const sorted = effects ? admissionsLast(effects) : [];
    return [
      job ? jobValues(job) : null,
      when ? when.map(guardValues) : [],
      sorted.map((effect) => this.#effect(effect)),
    ];
  }

  #effect(effect: Effect): Packed {
    if ("enqueue" in effect) return ["e", this.#jobs.encode(effect.enqueue)];
    if ("countdown" in effect) return ["c", effect.countdown];
    if ("put" in effect) return ["p", ...effect.put, JSON.stringify(effect.body), effect.wakeAt];
    if ("delete" in effect) return ["d", ...effect.delete];
    if ("admit" in effect) {
      const { from, to } = startsOf(effect.admit);
      return ["a", effect.admit, effect.count, effect.limit && limitValues(effect.limit), from, to];
    }
    if ("spend" in effect) {
      const { spend, by, at, limit } = effect;
      const body = JSON.stringify({ limitKey: spend, limit });
      return ["s", spend, startKey(spend, by)[1], at, limitValues(limit), body];
    }
    if ("ready" in effect) return ["q", effect.ready];
    if ("request" in effect) return ["t", newTimeoutValues(effect.request)];
    if ("revoke" in effect) return ["k", whichValues(effect.revoke)];
    if ("remove" in effect) return ["x", effect.remove];
    if ("event" in effect) return ["v", ...this.#heads.item(effect)];
    return ["l", effect.job, JSON.stringify(effect.log)];
  }
}

function jobValues({ id, fence, rev, image, documents, nextFence, notifyHolder, drop }: JobWrite): Packed {
  return [
    id,
    fence,
    rev,
    image && imageValues(image),
    documentValues(documents),
    nextFence,
    notifyHolder,
    drop,
  ];
}

function guardValues(guard: Guard): Packed {
  if ("record" in guard) return ["r", ...guard.record, guard.version];
  if ("timeout" in guard) return ["t", guard.timeout, guard.owner];
  return ["i", guard.idle, guard.dueAt, guard.isDead];
}

function limitValues({ concurrency, rate, strict }: KeyLimit): Packed {
  return [concurrency, rate?.limit, rate?.per, strict];
}

export function newTimeoutValues(timeout: NewTimeout): Packed {
  return timeoutValues(timeout);
}

export function whichValues(which: Which): Packed {
  const { id, saga, scoped } = cancelValues(which);
  if (id !== undefined) return ["i", id];
  return scoped ? ["k", ...scoped] : ["s", saga];
}
