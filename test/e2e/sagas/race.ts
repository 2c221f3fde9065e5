import type { Engine } from "../../../src/index.ts";
import { entries, raceSaga } from "./sagas.ts";

export interface RaceReport {
  readonly fired: number;
  readonly revoked: number;
  /** Sagas that ended as both or neither: there must be none. */
  readonly wrong: readonly unknown[];
  /** Handlers of a timeout that were entered although its revoke had been confirmed: in vain, and rare. */
  readonly enteredLate: number;
}

/** How far from the instant of the timeout its revoke is sent, at most. */
const SPREAD = 40;

/** Lets as many sagas as said race a timeout against its revoke, `atOnce` of them at a time. */
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
  const ids = Array.from({ length: pairs }, (_, nth) => `${run}-${nth}`);
  for (let from = 0; from < ids.length; from += atOnce)
    await raceBatch(first, ids.slice(from, from + atOnce));
  return judge(first, ids, confirmed);
}

async function raceBatch(engine: Engine, ids: readonly string[]): Promise<void> {
  const fireAt = engine.now() + 300 + ids.length;
  await Promise.all(ids.map((id) => engine.send(raceSaga, "begun", { id, fireAt })));
  const stops = ids.map(async (id) => {
    const wait = fireAt - engine.now() + (Math.random() - 0.5) * 2 * SPREAD;
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
    ({ id, what, at }) => what === "fired" && at > (confirmed.get(id) ?? Number.POSITIVE_INFINITY),
  ).length;
  return { fired, revoked, wrong, enteredLate };
}
