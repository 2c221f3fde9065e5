import type { HistogramSnapshot } from "../../engine/statistics/lateness-histogram.ts";

export type Labels = Readonly<Record<string, string>>;
type Sample = readonly [labels: Labels, value: number];

/**
 * The text format of Prometheus: a dozen lines of grammar. A client library would only add a second registry beside our
 * counters.
 */
export class Exposition {
  readonly #lines: string[] = [];

  counter(name: string, help: string, samples: readonly Sample[]): this {
    return this.#family(name, "counter", help, samples);
  }

  gauge(name: string, help: string, samples: readonly Sample[]): this {
    return this.#family(name, "gauge", help, samples);
  }

  #family(name: string, type: string, help: string, samples: readonly Sample[]): this {
    this.#head(name, type, help);
    for (const [labels, value] of samples) this.#lines.push(`${name}${written(labels)} ${value}`);
    return this;
  }

  /** Converts milliseconds to seconds, as Prometheus expects. */
  histogram(
    name: string,
    help: string,
    bounds: readonly number[],
    series: readonly (readonly [labels: Labels, histogram: HistogramSnapshot])[],
  ): this {
    this.#head(name, "histogram", help);
    for (const [labels, { counts, sum, total }] of series) {
      let below = 0;
      for (const [index, bound] of bounds.entries()) {
        below += counts[index] ?? 0;
        this.#lines.push(`${name}_bucket${written({ ...labels, le: String(bound / 1_000) })} ${below}`);
      }
      this.#lines.push(`${name}_bucket${written({ ...labels, le: "+Inf" })} ${total}`);
      this.#lines.push(`${name}_sum${written(labels)} ${sum / 1_000}`);
      this.#lines.push(`${name}_count${written(labels)} ${total}`);
    }
    return this;
  }

  #head(name: string, type: string, help: string): void {
    this.#lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
  }

  text(): string {
    return `${this.#lines.join("\n")}\n`;
  }
}

const ESCAPES: Readonly<Record<string, string>> = { "\\": "\\\\", '"': '\\"', "\n": "\\n" };

function written(labels: Labels): string {
  const pairs = Object.entries(labels).map(
    ([name, value]) => `${name}="${value.replace(/[\\"\n]/g, (char) => ESCAPES[char] as string)}"`,
  );
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}
