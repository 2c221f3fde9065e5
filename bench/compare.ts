/**
 * `node bench/compare.ts <rootA> <rootB> [--jobs 40000] [--rounds 7] [--stores memory,sqlite,postgres]`: what plain jobs
 * cost in two source trees, before and after a change. Every measurement is a process of its own; the trees take turns,
 * and who goes first changes with each round, so that a machine that slows down slows both down. It prints medians,
 * spreads and the ratio of the medians, and beside it the median of the ratios of each round, which a slow drift of the
 * machine does not touch.
 */

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs, promisify } from "node:util";
import { createDatabase, startPostgres } from "../test/postgres.ts";
import type { Measured } from "./compare-child.ts";

const CHILD = join(import.meta.dirname, "compare-child.ts");
const STORES = ["memory", "sqlite", "postgres"] as const;
type StoreName = (typeof STORES)[number];
const FIGURES = ["enqueue", "drain"] as const;
const run = promisify(execFile);

interface Settings {
  readonly roots: readonly [string, string];
  readonly jobs: number;
  readonly rounds: number;
  readonly stores: readonly StoreName[];
}

function settings(): Settings {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      jobs: { type: "string", default: "40000" },
      rounds: { type: "string", default: "7" },
      stores: { type: "string", default: STORES.join(",") },
    },
  });
  const [a, b] = positionals;
  if (a === undefined || b === undefined)
    throw new Error("name two source trees: node bench/compare.ts <rootA> <rootB>");
  const stores = values.stores.split(",");
  const unknown = stores.find((name) => !(STORES as readonly string[]).includes(name));
  if (unknown !== undefined) throw new Error(`--stores: "${unknown}"; use some of ${STORES.join(", ")}`);
  return {
    roots: [resolve(a), resolve(b)],
    jobs: countOf("--jobs", values.jobs),
    rounds: countOf("--rounds", values.rounds),
    stores: stores as StoreName[],
  };
}

function countOf(option: string, text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count > 0) return count;
  throw new Error(`${option}: "${text}"; use a whole number above 0`);
}

/** One measurement, on a store that nothing was in before. */
async function measure(root: string, store: StoreName, jobs: number, url: string): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), "curfew-compare-"));
  await using database = store === "postgres" ? await createDatabase(url) : undefined;
  const address = store === "sqlite" ? `sqlite:${join(folder, "jobs.db")}` : "memory:";
  try {
    const args = [CHILD, root, database?.url ?? address, `${jobs}`];
    const { stdout } = await run(process.execPath, args, { maxBuffer: 1e7 });
    return JSON.parse(stdout.trim().split("\n").at(-1) as string) as Measured;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function compare(store: StoreName, { roots, jobs, rounds }: Settings, url: string): Promise<void> {
  const measured: [Measured[], Measured[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    for (const which of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      const figures = await measure(roots[which], store, jobs, url);
      measured[which].push(figures);
      const { enqueue, drain } = figures;
      process.stderr.write(
        `  ${store} ${"AB"[which]}: enqueue ${Math.round(enqueue)}/s, drain ${Math.round(drain)}/s\n`,
      );
    }
  }
  for (const figure of FIGURES) {
    const [a, b] = measured.map((list) => list.map((one) => one[figure])) as [number[], number[]];
    const [cpuA, cpuB] = measured.map((list) => median(list.map((one) => one.cpu[figure]))) as [
      number,
      number,
    ];
    const ratios = b.map((rate, round) => rate / (a[round] as number));
    console.log(
      `${store} ${figure}: A ${spread(a)}, B ${spread(b)} jobs/s; B/A ${(median(b) / median(a)).toFixed(3)}, by rounds ${median(ratios).toFixed(3)}; CPU per job A ${cpuA.toFixed(1)}, B ${cpuB.toFixed(1)} µs`,
    );
  }
}

function spread(values: readonly number[]): string {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return `${Math.round(median(values))} (${Math.round(least)} to ${Math.round(most)})`;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((x, y) => x - y);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] as number;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] as number)) / 2;
}

const chosen = settings();
console.log(`A ${chosen.roots[0]}\nB ${chosen.roots[1]}\n${chosen.jobs} jobs, ${chosen.rounds} rounds`);
await using server = chosen.stores.includes("postgres") ? await startPostgres() : undefined;
for (const store of chosen.stores) await compare(store, chosen, server?.url ?? "");
