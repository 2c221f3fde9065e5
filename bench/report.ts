import { median, type Sample, spread } from "./measure.ts";

/** Peers are what others have built; the raw SQL floor is a bound and no peer. */
const PEERS = ["graphile-worker", "pg-boss"];

/** Prints one workload as a Markdown table, with ratios to the best peer. */
export function printTable(
  name: string,
  count: number,
  samples: Readonly<Record<string, readonly Sample[]>>,
): void {
  const rates = Object.entries(samples).map(([who, all]) => ({
    who,
    all,
    rate: median(all.map(({ rate }) => rate)),
  }));
  const best = Math.max(...rates.filter(({ who }) => PEERS.includes(who)).map(({ rate }) => rate));
  console.log(`\n### ${name}, ${count.toLocaleString("en")} jobs\n`);
  console.log("| contender | jobs/s | ± | ÷ best peer | Node µs/job | server µs/job |");
  console.log("|---|---:|---:|---:|---:|---:|");
  for (const { who, all, rate } of rates) {
    const cells = [
      who,
      Math.round(rate).toLocaleString("en"),
      `${Math.round(spread(all.map((sample) => sample.rate)) * 100)} %`,
      Number.isFinite(best) ? (rate / best).toFixed(2) : "–",
      median(all.map(({ node }) => node)).toFixed(1),
      median(all.map(({ server }) => server)).toFixed(1),
    ];
    console.log(`| ${cells.join(" | ")} |`);
  }
}
