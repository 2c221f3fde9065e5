/** A verdict of a master that died is reported within this time after its death. */
const REPORTED_WITHIN = 500;
/** No other master takes a verdict before. */
const ELECTION = 1_000;

/** What was acknowledged, and what ran: kept in this process, so no failover can take it back. */
export class Ledger {
  readonly acknowledged = new Set<string>();
  readonly runs = new Map<string, number>();
  /** When each job was reported as completed. */
  readonly verdicts = new Map<string, number[]>();
  /** When masters died. */
  readonly deaths: number[] = [];
  #waiting: { readonly target: number; readonly resolve: () => void }[] = [];

  acknowledge(id: string): void {
    this.acknowledged.add(id);
    const size = this.acknowledged.size;
    for (const { resolve } of this.#waiting.filter(({ target }) => size >= target)) resolve();
    this.#waiting = this.#waiting.filter(({ target }) => size < target);
  }

  ran(id: string): void {
    this.runs.set(id, (this.runs.get(id) ?? 0) + 1);
  }

  ended(id: string): void {
    this.verdicts.set(id, [...(this.verdicts.get(id) ?? []), performance.now()]);
  }

  /**
   * Jobs with several verdicts: those of which a failover took the first one back, and those for which nothing explains
   * the second one.
   */
  repeatedVerdicts(): { readonly takenBack: number; readonly doubled: number } {
    let [takenBack, doubled] = [0, 0];
    for (const times of this.verdicts.values()) {
      const isExplained = times.every(
        (at, index) => index === 0 || this.#hasFailed(times[index - 1] ?? 0, at),
      );
      if (times.length > 1 && isExplained) takenBack += 1;
      else if (times.length > 1) doubled += 1;
    }
    return { takenBack, doubled };
  }

  #hasFailed(from: number, to: number): boolean {
    return this.deaths.some((diedAt) => from < diedAt + REPORTED_WITHIN && to > diedAt + ELECTION);
  }

  /** Resolves when this many jobs are acknowledged. */
  reached(target: number): Promise<void> {
    if (this.acknowledged.size >= target) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ target, resolve }));
  }
}
