/** What was acknowledged, and what ran: kept in this process, so no failover can take it back. */
export class Ledger {
  readonly acknowledged = new Set<string>();
  readonly runs = new Map<string, number>();
  readonly verdicts = new Map<string, number>();
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
    this.verdicts.set(id, (this.verdicts.get(id) ?? 0) + 1);
  }

  /** Resolves when this many jobs are acknowledged. */
  reached(target: number): Promise<void> {
    if (this.acknowledged.size >= target) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ target, resolve }));
  }
}
