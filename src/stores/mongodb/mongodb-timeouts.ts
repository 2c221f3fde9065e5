import { CurfewError, refuse } from "../../core/errors.ts";
import { earlier, type Instant } from "../../core/time.ts";
import {
  checkTimeout,
  compareIds,
  destinationScope,
  type LeaseLoss,
  leaseLoss,
  type NewTimeout,
  sagaScope,
  sagaText,
  type TimeoutId,
  type TimeoutRow,
} from "../../core/timeout/timeout.ts";
import type * as port from "../../ports/timeouts.ts";
import { checkBatch, checkLimit } from "../check-batch.ts";
import { checkExtended, checkMoves, checkReleased } from "../check-instants.ts";
import { claimLimit } from "../claim-request.ts";
import {
  isDuplicateKey,
  type MongoCollection,
  type MongoFilter,
  refusedPositions,
} from "./mongodb-driver.ts";
import { documentOf, rowOf, type TimeoutDocument } from "./timeout-document.ts";

/** How many single-document writes of one call are under way at once. */
const AT_ONCE = 16;
/** Each round of a claim meets other claimers at most once per document. After this many it gives what it has. */
const CLAIM_ROUNDS = 20;
const KEY_TRIES = 20;
const BY_DUE = { dueAt: 1, id: 1 } as const;
const FREED = { owner: null, leaseUntil: null } as const;

/**
 * The timeout port on a collection (SEMANTICS 6). MongoDB compares and writes one document in one step, and every rule
 * here needs no more: a claim marks each document under the condition that it is still free, and a timeout with a known
 * key takes the place of the old one in the same document.
 */
export function createMongoTimeouts(collection: MongoCollection): port.TimeoutStore {
  return {
    leases: true,
    ...createReads(collection),
    ...createLeaseWrites(collection),
    async insert(timeouts, { tx }) {
      refuseTx(tx);
      checkBatch(timeouts, "timeouts");
      for (const timeout of timeouts) checkTimeout(timeout);
      if (timeouts.every(({ key }) => key === undefined)) return insertPlain(collection, timeouts);
      const answers: ("created" | "exists")[] = [];
      for (const timeout of timeouts) answers.push(await insertOne(collection, timeout));
      return answers;
    },
    claimDue: (request) => claim(collection, request),
    async reap({ now }) {
      const expired = { state: "leased", leaseUntil: { $lte: now } };
      return (await collection.updateMany(expired, { $set: { ...FREED, state: "free" } })).matchedCount;
    },
    async cancel(which, { now, tx }) {
      refuseTx(tx);
      return cancel(collection, which, now);
    },
    async requeue(ids, { now }) {
      checkBatch(ids, "ids");
      const change = { state: "free", deadAt: null, tries: 0, dueAt: now };
      return (await collection.updateMany({ id: { $in: [...ids] }, state: "dead" }, { $set: change }))
        .matchedCount;
    },
    async reschedule(moves) {
      checkBatch(moves, "moves");
      checkMoves(moves);
      const moved = await inOrder(
        moves,
        ({ id }) => id,
        async ({ id, from, to }) => {
          const filter = { id, state: "free", dueAt: from };
          return (await collection.updateOne(filter, { $set: { dueAt: to } })).matchedCount;
        },
      );
      return moved.reduce((sum, count) => sum + count, 0);
    },
  };
}

function createReads(
  collection: MongoCollection,
): Pick<port.TimeoutStore, "load" | "calendar" | "list" | "nextDueAt" | "count"> {
  const first = async (filter: MongoFilter, field: "dueAt" | "leaseUntil"): Promise<Instant | null> => {
    const [found] = await collection
      .find(filter)
      .sort({ [field]: 1 })
      .limit(1)
      .toArray();
    return found ? Number((found as TimeoutDocument)[field]) : null;
  };
  return {
    async load(ids) {
      checkBatch(ids, "ids");
      const found = (await collection.find({ id: { $in: [...ids] } }).toArray()).map(rowOf);
      const byId = new Map(found.map((row) => [row.id, row]));
      return ids.map((id) => byId.get(id) ?? null);
    },
    async calendar(request) {
      checkLimit(request.limit);
      const found = await collection
        .find(calendarFilter(request))
        .sort(BY_DUE)
        .limit(request.limit)
        .toArray();
      return found.map(rowOf);
    },
    async list(filter, after, limit) {
      checkLimit(limit);
      const found = await collection.find(listFilter(filter, after)).sort({ id: 1 }).limit(limit).toArray();
      return found.map(rowOf);
    },
    async nextDueAt(destinations) {
      const where = destinations ? { destination: { $in: [...destinations] } } : {};
      const [free, leased] = await Promise.all([
        first({ ...where, state: "free" }, "dueAt"),
        first({ ...where, state: "leased" }, "leaseUntil"),
      ]);
      return earlier(free, leased);
    },
    async count({ now }) {
      const [pending, due, leased, dead] = await Promise.all([
        collection.countDocuments({ state: "free" }),
        collection.countDocuments({ state: "free", dueAt: { $lte: now } }),
        collection.countDocuments({ state: "leased" }),
        collection.countDocuments({ state: "dead" }),
      ]);
      return { pending, due, leased, dead };
    },
  };
}

function calendarFilter({ destination, from, before, after }: port.CalendarRequest): MongoFilter {
  const where = { state: { $in: ["free", "leased"] }, ...(destination !== undefined && { destination }) };
  const span = { dueAt: { $gte: from, $lt: before } };
  if (!after) return { ...where, ...span };
  const behind = [{ dueAt: { $gt: after.dueAt } }, { dueAt: after.dueAt, id: { $gt: after.id } }];
  return { ...where, $and: [span, { $or: behind }] };
}

function listFilter(
  { destination, saga, isDead, hasWallClock }: port.TimeoutFilter,
  after: TimeoutId | null,
): MongoFilter {
  return {
    ...(destination !== undefined && { destination }),
    ...(saga && { sagaText: sagaText(saga) }),
    ...(isDead !== undefined && { state: isDead ? "dead" : { $in: ["free", "leased"] } }),
    ...(hasWallClock && { wallClock: { $ne: null } }),
    ...(after !== null && { id: { $gt: after } }),
  };
}

/** Without keys one call stores all. The server says which ids it had. */
async function insertPlain(
  collection: MongoCollection,
  timeouts: readonly NewTimeout[],
): Promise<("created" | "exists")[]> {
  if (timeouts.length === 0) return [];
  const isFirst = timeouts.map(({ id }, index) => timeouts.findIndex((one) => one.id === id) === index);
  const sent = timeouts.filter((_, index) => isFirst[index]);
  let refused = new Set<number>();
  try {
    await collection.insertMany(sent.map(documentOf), { ordered: false });
  } catch (error) {
    refused = refusedPositions(error);
  }
  let position = -1;
  return isFirst.map((isSent) => {
    if (!isSent) return "exists";
    position += 1;
    return refused.has(position) ? "exists" : "created";
  });
}

async function insertOne(collection: MongoCollection, timeout: NewTimeout): Promise<"created" | "exists"> {
  const { id, key } = timeout;
  if (key === undefined) return (await insertPlain(collection, [timeout]))[0] as "created" | "exists";
  const document = documentOf(timeout);
  for (let tries = 0; tries < KEY_TRIES; tries++) {
    try {
      // The document with this key, whatever its id, becomes the new timeout; without one, it is inserted.
      const holder = { scope: document.scope, key, id: { $ne: id } };
      await collection.findOneAndReplace(holder, document, { upsert: true });
      return "created";
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
      if ((await collection.find({ id }).limit(1).toArray()).length > 0) return "exists";
      // Another process inserted a timeout with this key at the same moment. The next try replaces it.
    }
  }
  const message = `insert: the timeout with the key ${key} changed ${KEY_TRIES} times during this call; try again`;
  throw new CurfewError("invalid_state", message, { field: "timeout.key" });
}

const freeAt = (now: Instant): MongoFilter => ({
  dueAt: { $lte: now },
  $or: [{ state: "free" }, { state: "leased", leaseUntil: { $lte: now } }],
});

/** Finds candidates, marks those that are still free, and reads which ones carry this claim's own token. */
async function claim(collection: MongoCollection, request: port.DueRequest): Promise<TimeoutRow[]> {
  const limit = claimLimit(request);
  const { now, leaseUntil, owner } = request;
  let held: TimeoutRow[] = [];
  for (let round = 0; round < CLAIM_ROUNDS; round++) {
    const ids = await candidates(collection, request, limit, held);
    if (ids.length === 0) break;
    const filter = { id: { $in: ids }, ...freeAt(now) };
    const { matchedCount } = await collection.updateMany(filter, {
      $set: { owner, leaseUntil, state: "leased" },
    });
    held = (await collection.find({ owner }).toArray()).map(rowOf);
    if (matchedCount === ids.length) break;
  }
  return held.sort(compareDue);
}

async function candidates(
  collection: MongoCollection,
  { now, destinations }: port.DueRequest,
  limit: number,
  held: readonly TimeoutRow[],
): Promise<TimeoutId[]> {
  const sources = destinations ?? [{ name: undefined, limit }];
  const found = await Promise.all(
    sources.map(async ({ name, limit: most }) => {
      const taken = held.filter(({ destination }) => name === undefined || destination === name).length;
      if (most - taken <= 0) return [];
      const where = { ...(name !== undefined && { destination: name }), dueAt: { $lte: now } };
      const expired = { ...where, state: "leased", leaseUntil: { $lte: now } };
      const both = await Promise.all(
        [{ ...where, state: "free" }, expired].map((filter) =>
          collection
            .find(filter)
            .sort(BY_DUE)
            .limit(most - taken)
            .toArray(),
        ),
      );
      return both
        .flat()
        .map(rowOf)
        .sort(compareDue)
        .slice(0, most - taken);
    }),
  );
  return found
    .flat()
    .sort(compareDue)
    .slice(0, limit - held.length)
    .map(({ id }) => id);
}

function compareDue(a: TimeoutRow, b: TimeoutRow): number {
  return a.dueAt - b.dueAt || compareIds(a.id, b.id);
}

/** The calls that a lease guards. Each document is compared and written in one step. */
function createLeaseWrites(
  collection: MongoCollection,
): Pick<port.TimeoutStore, "remove" | "release" | "extend"> {
  const lossOf = async (id: TimeoutId, owner: string, now: Instant): Promise<LeaseLoss | null> => {
    const [found] = await collection.find({ id }).limit(1).toArray();
    return leaseLoss(found ? rowOf(found) : undefined, owner, now);
  };
  /** Tries again if the lease is held after all: the owner renewed it between the two statements. */
  const guarded = async (
    { id, owner }: port.LeasedTimeout,
    now: Instant,
    write: (filter: MongoFilter) => Promise<number>,
  ): Promise<port.LeaseAnswer> => {
    if (owner === undefined) {
      await write({ id });
      return "ok";
    }
    for (;;) {
      if ((await write({ id, owner, leaseUntil: { $gt: now } })) > 0) return "ok";
      const loss = await lossOf(id, owner, now);
      if (loss) return loss;
    }
  };
  return {
    async remove(leased, { now }) {
      checkBatch(leased, "leased");
      return inOrder(
        leased,
        ({ id }) => id,
        (one) => guarded(one, now, async (filter) => (await collection.deleteOne(filter)).deletedCount),
      );
    },
    async release(released, { now }) {
      checkBatch(released, "released");
      checkReleased(released);
      return inOrder(
        released,
        ({ id }) => id,
        (one) => guarded(one, now, (filter) => release(collection, filter, one, now)),
      );
    },
    async extend(extended, { now }) {
      checkBatch(extended, "extended");
      checkExtended(extended);
      return inOrder(
        extended,
        ({ id }) => id,
        (one) =>
          guarded(one, now, async (filter) => {
            const change = { $set: { leaseUntil: one.leaseUntil } };
            return (await collection.updateOne(filter, change)).matchedCount;
          }),
      );
    },
  };
}

async function release(
  collection: MongoCollection,
  filter: MongoFilter,
  { dueAt, error, isDead }: port.ReleasedTimeout,
  now: Instant,
): Promise<number> {
  const change = {
    ...FREED,
    ...(dueAt !== undefined && { dueAt }),
    ...(error !== undefined && { error }),
    ...(isDead && { deadAt: now }),
  };
  const counted = error === undefined ? {} : { $inc: { tries: 1 } };
  const live = { ...change, state: isDead ? "dead" : "free" };
  const { matchedCount } = await collection.updateOne(
    { ...filter, deadAt: null },
    { $set: live, ...counted },
  );
  if (matchedCount > 0) return matchedCount;
  // Without an owner a dead timeout may be named. It stays dead.
  const dead = await collection.updateOne({ ...filter, deadAt: { $ne: null } }, { $set: change, ...counted });
  return dead.matchedCount;
}

async function cancel(collection: MongoCollection, which: port.Which, now: Instant): Promise<port.Revoked> {
  if ("saga" in which && which.key === undefined) {
    const ofSaga = { sagaText: sagaText(which.saga) };
    const idle = { ...ofSaga, $or: [{ leaseUntil: null }, { leaseUntil: { $lte: now } }] };
    const { deletedCount: pending } = await collection.deleteMany(idle);
    const { deletedCount: leased } = await collection.deleteMany(ofSaga);
    return { pending, leased };
  }
  const found = await collection.findOneAndDelete(filterOf(which));
  if (!found) return { pending: 0, leased: 0 };
  const { leaseUntil } = rowOf(found);
  return leaseUntil !== null && leaseUntil > now ? { pending: 0, leased: 1 } : { pending: 1, leased: 0 };
}

function filterOf(which: port.Which): MongoFilter {
  if ("id" in which) return { id: which.id };
  const scope = "saga" in which ? sagaScope(which.saga) : destinationScope(which.destination);
  return { scope, key: which.key };
}

/** Runs `work` for all items, 16 at once. Items with the same name follow each other. */
async function inOrder<Item, Answer>(
  items: readonly Item[],
  nameOf: (item: Item) => string,
  work: (item: Item) => Promise<Answer>,
): Promise<Answer[]> {
  const answers: Answer[] = new Array(items.length);
  const groups = [...Map.groupBy(items.keys(), (index) => nameOf(items[index] as Item)).values()];
  const next = groups.values();
  const worker = async () => {
    for (const group of next) for (const index of group) answers[index] = await work(items[index] as Item);
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, groups.length) }, worker));
  return answers;
}

function refuseTx(tx: unknown): void {
  if (tx === undefined) return;
  const fix = "leave it out: the MongoDB timeout store joins no transactions";
  throw refuse("invalid_option", "options.tx", typeof tx, fix);
}
