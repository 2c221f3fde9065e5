interface Chain {
  last: Promise<unknown>;
  length: number;
}

/** Runs the calls of one key one after the other, in their order. Calls of different keys run at the same time. */
export class Chains {
  readonly #chains = new Map<string, Chain>();

  /** How many calls of this key run or wait. */
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
