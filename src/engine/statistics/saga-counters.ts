export interface SagaCounts {
  readonly started: number;
  readonly handled: number;
  readonly completed: number;
  readonly failed: number;
  /** Timeouts for a completed saga or that were revoked during delivery, and repeated messages. */
  readonly ignored: number;
  readonly notFound: number;
  /** Timeouts that a handler revoked. */
  readonly revoked: number;
  /** Timeouts that were pending when their saga completed. */
  readonly cancelled: number;
  /** Steps that ran again because another process wrote the saga first. */
  readonly conflicts: number;
  /** Steps whose lease ended before their commit. */
  readonly lapsed: number;
}

/** Counts of this process since it started. */
export class SagaCounters {
  readonly #counts: { -readonly [Name in keyof SagaCounts]: number } = {
    started: 0,
    handled: 0,
    completed: 0,
    failed: 0,
    ignored: 0,
    notFound: 0,
    revoked: 0,
    cancelled: 0,
    conflicts: 0,
    lapsed: 0,
  };

  add(name: keyof SagaCounts, count = 1): void {
    this.#counts[name] += count;
  }

  snapshot(): SagaCounts {
    return { ...this.#counts };
  }
}
