import { CurfewError } from "../core/errors.ts";
import type { Engine } from "../engine/engine.ts";
import { DEFINITIONS } from "./jobs.ts";
import { orderSaga } from "./order-saga.ts";

/** The cron that marks a store as the demo's. It is stored before anything else, so a crash leaves no job without it. */
export const MARK = "demo: refresh the exchange rates";
export const TRIALS = "demo-trials";
export const FAX = "demo-fax";

const TYPES: ReadonlySet<string> = new Set(DEFINITIONS.map(({ type }) => type));
const DESTINATIONS: ReadonlySet<string> = new Set([TRIALS, FAX]);
const OF_ORDERS = `saga:${orderSaga.type}`;
/** The demo deletes its jobs soon, so a store that has more than this is not its own. */
const MOST_JOBS = 50_000;
const PAGE = 1_000;

/** Says whether the demo has run on this store. Throws if the store has anything else: it must not be touched. */
export async function refuseOtherJobs(engine: Engine, store: string): Promise<"empty" | "demo"> {
  const crons = await engine.crons.list({ limit: PAGE });
  const isMarked = crons.some(({ name }) => name === MARK);
  const found =
    (await otherJob(engine, isMarked)) ??
    crons
      .map(({ name }) => (isMarked && name.startsWith("demo: ") ? undefined : `cron "${name}"`))
      .find(Boolean) ??
    (await otherSaga(engine, isMarked)) ??
    (await otherTimeout(engine, isMarked));
  if (found === undefined) return isMarked ? "demo" : "empty";
  const fix = "use an empty store, such as --store sqlite:curfew-demo.db or --store memory:";
  throw new CurfewError(
    "invalid_option",
    `demo: store ${JSON.stringify(store)} has ${found}, which is not the demo's; ${fix}`,
    { field: "demo" },
  );
}

async function otherJob(engine: Engine, isMarked: boolean): Promise<string | undefined> {
  let after: string | null = null;
  let seen = 0;
  do {
    const page = await engine.find({}, { after, limit: PAGE });
    const other = page.jobs.find(({ type }) => !isMarked || !TYPES.has(type));
    if (other) return `job ${other.id} of type "${other.type}"`;
    seen += page.jobs.length;
    after = page.cursor;
  } while (after !== null && seen < MOST_JOBS);
  return after === null ? undefined : `more than ${MOST_JOBS} jobs`;
}

async function otherSaga(engine: Engine, isMarked: boolean): Promise<string | undefined> {
  const { sagas } = await engine.sagaRecords.list({ limit: PAGE });
  const other = sagas.find(({ type }) => !isMarked || type !== orderSaga.type);
  return other && `saga "${other.type}" ${JSON.stringify(other.id)}`;
}

async function otherTimeout(engine: Engine, isMarked: boolean): Promise<string | undefined> {
  const timeouts = await engine.timeouts.list({}, { limit: PAGE });
  const other = timeouts.find(
    ({ destination }) => !isMarked || !(DESTINATIONS.has(destination) || destination === OF_ORDERS),
  );
  return other && `a timeout for "${other.destination}"`;
}
