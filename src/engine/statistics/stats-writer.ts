import { FINEST, keyOf } from "../../core/stats/grains.ts";
import type { Effect } from "../../ports/store.ts";
import { commitUnits } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";
import type { Minute } from "./minute-counts.ts";
import { statsKind } from "./roll-up.ts";

const MINUTES = statsKind(FINEST);

/**
 * Writes what this process counted, whole minutes and the one that runs. A record holds a minute of one engine and is
 * written as a whole each time, so a write whose reply was lost may be repeated.
 */
export class StatsWriter {
  readonly #parts: Pick<EngineContext, "store" | "clock" | "counters">;
  /** Who counted it: two processes never write the same record. */
  readonly #name: string;
  /** What was last written of the running minute, to tell what has changed. */
  readonly #written = new Map<string, string>();
  #current: Promise<void> | undefined;

  constructor(parts: Pick<EngineContext, "store" | "clock" | "counters">, name: string) {
    this.#parts = parts;
    this.#name = name;
  }

  /** Resolves when everything counted before the call is stored. Calls at the same time share a write. */
  async flush(): Promise<void> {
    // A write under way may have been made up before the call.
    await this.#current?.catch(() => {});
    this.#current ??= this.#write().finally(() => {
      this.#current = undefined;
    });
    await this.#current;
  }

  async #write(): Promise<void> {
    const { clock, counters } = this.#parts;
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
      // Nobody waits for it, and a power cut may take the last seconds of it.
      await commitUnits(this.#parts, units.slice(from, from + 1_000), { relaxed: true });
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
