interface Chain {
  last: Promise<unknown>;
  length: number;
}

/** Runs what belongs to one key one after the other, in the order of the calls, and different keys side by side. */
export class Chains {
  readonly #chains = new Map<string, Chain>();

  /** How many run or wait under this key. */
  length(key: string): number {
    return this.#chains.get(key)?.length ?? 0;
  }

  run<Value>(key: string, work: () => Promise<Value>): Promise<Value> {
    const chain = this.#chains.get(key) ?? { last: Promise.resolve(), length: 0 };
    const current = chain.last.then(work, work);
    chain.last = current;
    chain.length += 1;
    this.#chains.set(key, chain);
    const leave = () => {
      chain.length -= 1;
      if (chain.length === 0) this.#chains.delete(key);
    };
    current.then(leave, leave);
    return current;
  }
}
