/**
 * `node bench/compare.ts <rootA> <rootB> [--jobs 20000] [--rounds 5] [--samples 3] [--concurrency 10]
 * [--stores memory,sqlite,postgres18] [--retention drop,keep]`: what plain jobs cost in two source trees, before and after
 * a change. Every round is a process of its own, which warms up and takes the median of its samples; the trees take turns,
 * and who goes first changes with each round, so that a machine that slows down slows both down. It prints medians,
 * spreads and the ratio of the medians, and beside it the median of the ratios of each round, which a slow drift of the
 * machine does not touch. Garbage is collected before each phase. `postgres15` is that of the system, `postgres18` that of npm.
 */

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs, promisify } from "node:util";
import { createDatabase } from "../test/postgres.ts";
import type { ChildOptions, Measured } from "./compare-child.ts";
import { median } from "./measure.ts";
import { startServers } from "./servers.ts";

const CHILD = join(import.meta.dirname, "compare-child.ts");
const STORES = ["memory", "sqlite", "postgres15", "postgres18"] as const;
type StoreName = (typeof STORES)[number];
const RETENTIONS = ["drop", "keep"] as const;
type Retention = (typeof RETENTIONS)[number];
const FIGURES = ["enqueue", "drain"] as const;
const run = promisify(execFile);

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    jobs: { type: "string", default: "20000" },
    rounds: { type: "string", default: "5" },
    samples: { type: "string", default: "3" },
    concurrency: { type: "string", default: "10" },
    stores: { type: "string", default: "memory,sqlite,postgres18" },
    retention: { type: "string", default: RETENTIONS.join(",") },
  },
});

function countOf(option: "jobs" | "rounds" | "samples" | "concurrency"): number {
  const count = Number(values[option]);
  if (Number.isInteger(count) && count > 0) return count;
  throw new Error(`--${option}: "${values[option]}"; use a whole number above 0`);
}

function someOf<Name extends string>(option: "stores" | "retention", known: readonly Name[]): Name[] {
  const names = values[option].split(",");
  const unknown = names.find((name) => !(known as readonly string[]).includes(name));
  if (unknown === undefined) return names as Name[];
  throw new Error(`--${option}: "${unknown}"; use some of ${known.join(", ")}`);
}

function rootsOf(): readonly [string, string] {
  const [a, b] = positionals;
  if (a === undefined || b === undefined)
    throw new Error("name two source trees: node bench/compare.ts <rootA> <rootB>");
  return [resolve(a), resolve(b)];
}

/** One measurement, on a store that nothing was in before. */
async function measure(root: string, retention: Retention, url: string): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), "curfew-compare-"));
  await using database = url.startsWith("postgres") ? await createDatabase(url) : undefined;
  const store = database?.url ?? (url === "sqlite" ? `sqlite:${join(folder, "jobs.db")}` : "memory:");
  try {
    const options: ChildOptions = { root, store, retention, ...counts };
    const { stdout } = await run(process.execPath, ["--expose-gc", CHILD, JSON.stringify(options)], {
      maxBuffer: 1e7,
    });
    return JSON.parse(stdout.trim().split("\n").at(-1) as string) as Measured;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function compare(store: StoreName, retention: Retention, url: string): Promise<void> {
  const measured: [Measured[], Measured[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    for (const which of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      const figures = await measure(roots[which], retention, url);
      measured[which].push(figures);
      const rates = FIGURES.map((figure) => `${figure} ${Math.round(figures[figure].rate)}/s`).join(", ");
      process.stderr.write(`  ${store} ${retention} ${"AB"[which]}: ${rates}\n`);
    }
  }
  for (const figure of FIGURES) {
    const [a, b] = measured.map((list) => list.map((one) => one[figure].rate)) as [number[], number[]];
    const ratios = b.map((rate, round) => rate / (a[round] as number));
    const [costA, costB] = measured.map((list) =>
      (["node", "server"] as const).map((part) => median(list.map((one) => one[figure][part])).toFixed(1)),
    ) as [string[], string[]];
    console.log(
      `${store} ${retention} ${figure}: A ${spread(a)}, B ${spread(b)} jobs/s; B/A ${(median(b) / median(a)).toFixed(3)}, by rounds ${median(ratios).toFixed(3)}; CPU per job (Node, server) A ${costA.join(", ")}, B ${costB.join(", ")} µs`,
    );
  }
}

function spread(list: readonly number[]): string {
  return `${Math.round(median(list))} (${Math.round(Math.min(...list))} to ${Math.round(Math.max(...list))})`;
}

const roots = rootsOf();
const rounds = countOf("rounds");
const counts = {
  jobs: countOf("jobs"),
  samples: countOf("samples"),
  concurrency: countOf("concurrency"),
};
const retentions = someOf("retention", RETENTIONS);
console.log(
  `A ${roots[0]}\nB ${roots[1]}\n${counts.jobs} jobs at concurrency ${counts.concurrency}, ${rounds} rounds`,
);
for (const store of someOf("stores", STORES)) {
  const version = /^postgres(\d+)$/.exec(store)?.[1];
  const [server] = version === undefined ? [] : await startServers([version], undefined, false);
  for (const retention of retentions) await compare(store, retention, server?.url ?? store);
  await server?.close();
}
