export interface SagaCounts {
  readonly started: number;
  readonly handled: number;
  readonly completed: number;
  readonly failed: number;
  /** Timeouts that came for a saga that was over, and those revoked while under way; and messages that came twice. */
  readonly ignored: number;
  readonly notFound: number;
  /** Timeouts taken back by a handler. */
  readonly revoked: number;
  /** Timeouts that were pending when their saga completed. */
  readonly cancelled: number;
  /** Steps that were taken again because another one was faster. */
  readonly conflicts: number;
  /** Steps whose lease was gone when they were to be committed. */
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
