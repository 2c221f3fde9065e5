import { FINEST, keyOf } from "../../core/stats/grains.ts";
import type { Effect } from "../../ports/store.ts";
import { commitUnits } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";
import type { Minute } from "./minute-counts.ts";
import { statsKind } from "./roll-up.ts";

const MINUTES = statsKind(FINEST);

/**
 * Writes the counts of this process, ended minutes and the current one. A record holds one minute of one engine and is
 * always written whole, so a repeated write is harmless.
 */
export class StatsWriter {
  readonly #context: Pick<EngineContext, "store" | "clock" | "counters">;
  /** Names this engine, so that no two processes write the same record. */
  readonly #name: string;
  /** The last written text of the current minute's records, to write only changed ones. */
  readonly #written = new Map<string, string>();
  #current: Promise<void> | undefined;

  constructor(context: Pick<EngineContext, "store" | "clock" | "counters">, name: string) {
    this.#context = context;
    this.#name = name;
  }

  /** Resolves when all counts before the call are stored. Calls at the same time share a write. */
  async flush(): Promise<void> {
    // A running write may have read its counts before this call.
    await this.#current?.catch(() => {});
    this.#current ??= this.#write().finally(() => {
      this.#current = undefined;
    });
    await this.#current;
  }

  async #write(): Promise<void> {
    const { clock, counters } = this.#context;
    const now = clock.now();
    const { ended, running } = counters.minutes.pending(now);
    const effects: Effect[] = [];
    for (const minute of ended) effects.push(...this.#effectsOf(minute));
    const written = new Map<string, string>();
    for (const effect of this.#effectsOf(running)) {
      const text = JSON.stringify(effect.body);
      written.set(effect.put[1], text);
      if (this.#written.get(effect.put[1]) !== text) effects.push(effect);
    }
    if (effects.length === 0) return;
    const units = effects.map((effect) => ({ effects: [effect] }));
    for (let from = 0; from < units.length; from += 1_000)
      // Relaxed: a power failure may lose the last seconds.
      await commitUnits(this.#context, units.slice(from, from + 1_000), { relaxed: true });
    counters.minutes.forget(ended);
    this.#written.clear();
    for (const [key, text] of written) this.#written.set(key, text);
  }

  #effectsOf({ start, slices }: Minute) {
    return [...slices].map(([slice, series]) =>
      MINUTES.put(keyOf(start, `${this.#name}/${slice}`), { series }, null),
    );
  }
}
