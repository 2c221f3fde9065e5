import { checkCount, refuse, refuseUnknownKeys } from "../errors.ts";
import { type FairOptions, parseFair, type QueueFairness } from "../fair/fair-options.ts";
import type { PolicySettings } from "../job/job.ts";
import { type PolicyOptions, parseSettings } from "../job/policy/policy.ts";
import { keysOf } from "../option-keys.ts";
import { parseRate, type Rate, type RateOptions } from "./limit.ts";

/** How many jobs may wait in a queue, and what to do when it is full. */
export interface DepthOptions {
  /** Counts available, pending, scheduled and retryable jobs. */
  readonly most: number;
  /** `"reject"` refuses the new job (the default). `"drop-oldest"` discards those that have waited longest. */
  readonly onFull?: "reject" | "drop-oldest";
  /** From this number of waiting jobs on, the event `queue.pressure` warns. */
  readonly warnAt?: number;
}

export interface QueueOptions extends PolicyOptions {
  /** How many jobs of the queue may run at once, over all workers. */
  readonly concurrency?: number;
  /**
   * How many jobs of the queue may start in any such time, over all workers. It bounds jobs that are enqueued while it is
   * set and have no limit of their own.
   */
  readonly rate?: RateOptions;
  readonly depth?: DepthOptions;
  /** Claims take from each fair key in turn, so that many jobs of one key do not delay those of another. */
  readonly fair?: FairOptions;
  /**
   * `"strict"`: claims are in the order (rank, id) over the whole queue. A store with several homes then keeps the queue
   * in one of them, which bounds its rate. Other stores always claim so.
   */
  readonly order?: "strict";
}

export interface QueueDepth {
  readonly most: number;
  readonly onFull: "reject" | "drop-oldest";
  readonly warnAt?: number;
}

/** The stored settings of a queue: its source of SEMANTICS 2, and its limits. */
export interface StoredQueue extends PolicySettings {
  readonly concurrency?: number;
  readonly rate?: Rate;
  readonly depth?: QueueDepth;
  readonly fair?: QueueFairness;
  readonly order?: "strict";
}

const QUEUE_KEYS = keysOf<QueueOptions>({
  timeouts: true,
  retry: true,
  retention: true,
  concurrency: true,
  rate: true,
  depth: true,
  fair: true,
  order: true,
});

const MOST = 1_000_000;

export function parseQueue(options: QueueOptions, field: string): StoredQueue {
  refuseUnknownKeys(options, field, QUEUE_KEYS);
  const { concurrency, rate, depth, fair, order } = options;
  if (order !== undefined && order !== "strict")
    throw refuse("invalid_option", `${field}.order`, order, 'write "strict", or leave it out');
  return {
    ...parseSettings(options, field),
    ...(concurrency !== undefined && { concurrency: checkCount(concurrency, `${field}.concurrency`, MOST) }),
    ...(rate !== undefined && { rate: parseRate(rate, `${field}.rate`) }),
    ...(depth !== undefined && { depth: parseDepth(depth, `${field}.depth`) }),
    ...(fair !== undefined && { fair: parseFair(fair, `${field}.fair`) }),
    ...(order !== undefined && { order }),
  };
}

function parseDepth(depth: DepthOptions, field: string): QueueDepth {
  refuseUnknownKeys(depth, field, ["most", "onFull", "warnAt"]);
  const { onFull = "reject", warnAt } = depth;
  if (onFull !== "reject" && onFull !== "drop-oldest")
    throw refuse("invalid_option", `${field}.onFull`, onFull, 'write "reject" or "drop-oldest"');
  const most = checkCount(depth.most, `${field}.most`, MOST);
  return {
    most,
    onFull,
    ...(warnAt !== undefined && { warnAt: checkCount(warnAt, `${field}.warnAt`, most) }),
  };
}
