import type { Engine } from "../../../src/index.ts";
import { entries, raceSaga } from "./sagas.ts";

export interface RaceReport {
  /** How many sagas raced: more than asked for if nearly all of those ended the same way. */
  readonly pairs: number;
  readonly fired: number;
  readonly revoked: number;
  /** Sagas that ended as both or neither: there must be none. */
  readonly wrong: readonly unknown[];
  /** Handlers of a timeout that were entered although its revoke had been confirmed: in vain, and rare. */
  readonly enteredLate: number;
}

/** How far from the instant of the timeout its revoke is sent, at most. */
const SPREAD = 40;
/** Of this share of the pairs, at least, each side wins: else there was no race. */
const EACH_WINS = 1 / 20;
/** The most batches that are added for that. */
const MOST_ADDED = 40;

/** When a batch fires its timeouts and sends its revokes. A busy machine is late with both, and not equally. */
interface Pace {
  /** Milliseconds from the start of a batch to its timeouts. */
  ahead: number;
  /** Milliseconds by which revokes are sent earlier than the timeouts are due. */
  lead: number;
}

/**
 * Lets as many sagas as said race a timeout against its revoke, `atOnce` of them at a time. A batch that one side wins
 * alone changes the pace of the next, and batches are added until both sides have won some.
 */
export async function race(
  engines: readonly Engine[],
  pairs: number,
  atOnce: number,
  run: string,
): Promise<RaceReport> {
  const confirmed = new Map<string, number>();
  for (const engine of engines) {
    engine.host([raceSaga]);
    engine.on("saga.handled", ({ saga, event }) => {
      if (event.name === "stopped") confirmed.set(saga, performance.now());
    });
  }
  const [first] = engines as [Engine];
  const pace: Pace = { ahead: 300, lead: 0 };
  const most = pairs + MOST_ADDED * atOnce;
  let sum: RaceReport = { pairs: 0, fired: 0, revoked: 0, wrong: [], enteredLate: 0 };
  while (sum.pairs < pairs || (isOneSided(sum) && sum.pairs < most)) {
    const ids = Array.from({ length: atOnce }, (_, nth) => `${run}-${sum.pairs + nth}`);
    await raceBatch(first, ids, pace);
    const report = await judge(first, ids, confirmed);
    adapt(pace, report);
    sum = {
      pairs: sum.pairs + report.pairs,
      fired: sum.fired + report.fired,
      revoked: sum.revoked + report.revoked,
      wrong: [...sum.wrong, ...report.wrong],
      enteredLate: sum.enteredLate + report.enteredLate,
    };
  }
  return sum;
}

function isOneSided({ pairs, fired, revoked }: RaceReport): boolean {
  return Math.min(fired, revoked) <= pairs * EACH_WINS;
}

function adapt(pace: Pace, { fired, revoked }: RaceReport): void {
  if (revoked < fired / 10) {
    pace.lead += SPREAD;
    pace.ahead = Math.min(2 * pace.ahead, 5_000);
  } else if (fired < revoked / 10) pace.lead -= SPREAD;
}

async function raceBatch(engine: Engine, ids: readonly string[], { ahead, lead }: Pace): Promise<void> {
  const fireAt = engine.now() + ahead + ids.length;
  await Promise.all(ids.map((id) => engine.send(raceSaga, "begun", { id, fireAt })));
  const stops = ids.map(async (id) => {
    const wait = fireAt - lead - engine.now() + (Math.random() - 0.5) * 2 * SPREAD;
    // The race is against real time, so its other side waits on real time too.
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, wait)));
    await engine.send(raceSaga, "stopped", { id });
  });
  await Promise.all(stops);
  await Promise.all(ids.map((id) => ended(engine, id)));
}

/** Both messages are handled, and nothing of the saga is pending any more. */
async function ended(engine: Engine, id: string): Promise<void> {
  for (;;) {
    const view = await engine.saga(raceSaga, id).load();
    if (view && view.state.revoke !== null && view.pending.length === 0) return;
    // Other processes write the record, and nobody tells this one: it has to look.
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function judge(
  engine: Engine,
  ids: readonly string[],
  confirmed: ReadonlyMap<string, number>,
): Promise<RaceReport> {
  const wrong: unknown[] = [];
  let [fired, revoked] = [0, 0];
  for (const id of ids) {
    const state = (await engine.saga(raceSaga, id).load())?.state;
    if (state?.fired === 1 && state.revoke === "not-pending") fired += 1;
    else if (state?.fired === 0 && state.revoke === "revoked") {
      revoked += 1;
    } else wrong.push(state);
  }
  const enteredLate = entries.filter(
    ({ id, what, at }) =>
      what === "fired" && ids.includes(id) && at > (confirmed.get(id) ?? Number.POSITIVE_INFINITY),
  ).length;
  return { pairs: ids.length, fired, revoked, wrong, enteredLate };
}
