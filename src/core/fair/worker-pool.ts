import { checkCount, refuse, refuseUnknownKeys } from "../errors.ts";
import { checkQueue } from "../job/job-definition.ts";
import { keysOf } from "../option-keys.ts";
import { shareOut } from "./turns.ts";

export type PoolStrategy = "strict" | "round-robin" | "weighted" | "least-loaded";

/** A group of remote workers that share queues: how a fetch chooses among them. */
export interface PoolOptions {
  readonly queues: readonly string[];
  /**
   * `"round-robin"` (the default): one job of each queue in turn. `"weighted"`: as many as the weight of the queue.
   * `"strict"`: the first queue that has jobs. `"least-loaded"`: the queue with the most jobs.
   */
  readonly strategy?: PoolStrategy;
  /** Jobs in a turn, by queue; a queue that is not named has 1. For `"weighted"`. */
  readonly weights?: Readonly<Record<string, number>>;
  /** How many jobs the workers of the pool may run at once, of those that one server handed out. */
  readonly concurrency?: number;
  /** Workers outside of the pool get no jobs of its queues. */
  readonly isolated?: boolean;
  /** The share of starts that each queue gets at least while it has jobs, such as 0.05. */
  readonly leastShare?: number;
}

/** The stored form. */
export type Pool = Omit<PoolOptions, "strategy"> & { readonly strategy: PoolStrategy };

const STRATEGIES: readonly PoolStrategy[] = ["strict", "round-robin", "weighted", "least-loaded"];
const POOL_KEYS = keysOf<PoolOptions>({
  queues: true,
  strategy: true,
  weights: true,
  concurrency: true,
  isolated: true,
  leastShare: true,
});
const MOST_QUEUES = 100;
const MOST_WEIGHT = 1_000;
export const MOST_POOL_CONCURRENCY = 10_000;

function checkStrategy(strategy: unknown, field: string): PoolStrategy {
  const found = STRATEGIES.find((one) => one === strategy);
  if (found) return found;
  throw refuse("invalid_option", field, strategy, `use one of: ${STRATEGIES.join(", ")}`);
}

export function checkQueueWeights(
  weights: Readonly<Record<string, number>>,
  queues: readonly string[],
  field: string,
): Readonly<Record<string, number>> {
  for (const [queue, weight] of Object.entries(weights)) {
    if (!queues.includes(queue))
      throw refuse("invalid_option", field, queue, `it is no queue here; use: ${queues.join(", ")}`);
    checkCount(weight, `${field}[${JSON.stringify(queue)}]`, MOST_WEIGHT);
  }
  return weights;
}

export function parsePool(options: PoolOptions, field: string): Pool {
  refuseUnknownKeys(options, field, POOL_KEYS);
  const { queues, strategy = "round-robin", weights, concurrency, isolated, leastShare } = options;
  if (!Array.isArray(queues) || queues.length === 0 || queues.length > MOST_QUEUES)
    throw refuse("invalid_option", `${field}.queues`, queues, `name 1 to ${MOST_QUEUES} queues`);
  for (const queue of queues) checkQueue(queue, `${field}.queues`);
  if (new Set(queues).size < queues.length)
    throw refuse("invalid_option", `${field}.queues`, queues, "name each queue once");
  if (weights !== undefined && strategy !== "weighted")
    throw refuse("invalid_option", `${field}.weights`, strategy, 'weights need the strategy "weighted"');
  if (
    leastShare !== undefined &&
    !(typeof leastShare === "number" && leastShare > 0 && leastShare * queues.length <= 1)
  )
    throw refuse(
      "invalid_option",
      `${field}.leastShare`,
      leastShare,
      `use more than 0 and at most ${1 / queues.length}`,
    );
  return {
    queues: [...queues],
    strategy: checkStrategy(strategy, `${field}.strategy`),
    ...(weights !== undefined && { weights: checkQueueWeights(weights, queues, `${field}.weights`) }),
    ...(concurrency !== undefined && {
      concurrency: checkCount(concurrency, `${field}.concurrency`, MOST_POOL_CONCURRENCY),
    }),
    ...(isolated === true && { isolated }),
    ...(leastShare !== undefined && { leastShare }),
  };
}

/** Which queues a fetch claims from, and how many jobs of each. Each step is answered with how many there were. */
export type QueuePlan = Generator<{ readonly queue: string; readonly count: number }, void, number>;

/** Where the fetches of a pool stand, on one server. */
export interface PoolTurn {
  queue: string | null;
  /** What this queue gave in its turn. */
  taken: number;
  started: number;
}

/** Takes all it can from each queue before the next one. */
export function* inOrder(queues: readonly string[], room: number): QueuePlan {
  let left = room;
  for (const queue of queues) {
    if (left <= 0) return;
    left -= yield { queue, count: left };
  }
}

/** Takes from each queue as many jobs in its turn as its weight. Changes `turn`. */
export function* inQueueTurns(
  queues: readonly string[],
  weights: Readonly<Record<string, number>>,
  turn: PoolTurn,
  room: number,
): QueuePlan {
  const weightOf = (queue: string) => (Object.hasOwn(weights, queue) ? (weights[queue] as number) : 1);
  const hasTurn = () => turn.queue !== null && turn.taken < weightOf(turn.queue);
  let left = inTurn(queues, turn.queue, hasTurn());
  for (let open = room; open > 0 && left.length > 0; ) {
    const taken = hasTurn() && left[0] === turn.queue ? turn.taken : 0;
    const ofQueues = left.map(weightOf);
    const shares = shareOut(ofQueues, open, taken);
    const end = endOfTurns(ofQueues, open + taken);
    const dry = new Set<string>();
    let isAnyGiven = false;
    for (const [index, queue] of left.entries()) {
      const count = shares[index] as number;
      if (count === 0) continue;
      const gave = yield { queue, count };
      open -= gave;
      if (gave < count) dry.add(queue);
      if (gave > 0) isAnyGiven = true;
    }
    if (isAnyGiven) {
      const queue = left[end.index] as string;
      turn.queue = queue;
      turn.taken = dry.has(queue) ? weightOf(queue) : end.taken;
    }
    left = inTurn(left, turn.queue, hasTurn()).filter((queue) => !dry.has(queue));
  }
}

/** The queues after this one, or from it on, and then the others. */
function inTurn(queues: readonly string[], last: string | null, isAgain: boolean): string[] {
  const at = last === null ? -1 : queues.indexOf(last);
  const start = at === -1 ? 0 : at + (isAgain ? 0 : 1);
  return [...queues.slice(start), ...queues.slice(0, start)];
}

/** Which queue has its turn after `count` jobs in turns, and how many it gave in it. */
function endOfTurns(weights: readonly number[], count: number): { index: number; taken: number } {
  const sum = weights.reduce((all, weight) => all + weight, 0);
  let left = count % sum || sum;
  for (const [index, weight] of weights.entries()) {
    if (left <= weight) return { index, taken: left };
    left -= weight;
  }
  return { index: 0, taken: 0 };
}

/** Lets each queue have its least share first: every nth start is of the next queue, whatever the strategy says. */
export function* withLeastShare(
  queues: readonly string[],
  leastShare: number,
  turn: PoolTurn,
  room: number,
  rest: (room: number) => QueuePlan,
): QueuePlan {
  const every = Math.max(1, Math.floor(1 / (leastShare * queues.length)));
  let left = room;
  for (let nth = 1; nth <= room && left > 0; nth++) {
    const number = turn.started + nth;
    if (number % every !== 0) continue;
    const queue = queues[(number / every) % queues.length] as string;
    left -= yield { queue, count: 1 };
  }
  turn.started += room;
  yield* rest(left);
}
