/** Runs what belongs to one key one after the other, in the order of the calls, and different keys side by side. */
export class Chains {
  readonly #last = new Map<string, Promise<unknown>>();

  get size(): number {
    return this.#last.size;
  }

  run<Value>(key: string, work: () => Promise<Value>): Promise<Value> {
    const before = this.#last.get(key);
    const current = before ? before.then(work, work) : work();
    this.#last.set(key, current);
    const forget = () => {
      if (this.#last.get(key) === current) this.#last.delete(key);
    };
    current.then(forget, forget);
    return current;
  }
}
