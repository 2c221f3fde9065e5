import type { FairRules } from "../../../ojs/replies/wire-replies.ts";

/** Weights as lines: `enterprise 5`. */
export function weightsText(weights: FairRules["weights"] = {}): string {
  return Object.entries(weights)
    .map(([key, weight]) => `${key} ${weight}`)
    .join("\n");
}

export function readWeights(text: string): {
  readonly weights: Record<string, number>;
  readonly error?: string;
} {
  const weights: [string, number][] = [];
  for (const line of text.split("\n").map((one) => one.trim())) {
    if (line === "") continue;
    const [, key, weight] = /^(.+?)\s+(\d+)$/.exec(line) ?? [];
    const count = Number(weight);
    if (key === undefined || !(count >= 1 && count <= 1_000))
      return {
        weights: {},
        error: `"${line}": write a key and its weight from 1 to 1,000, such as "enterprise 5".`,
      };
    weights.push([key, count]);
  }
  return { weights: Object.fromEntries(weights) };
}
