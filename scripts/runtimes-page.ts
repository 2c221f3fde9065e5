import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { RuntimeResult } from "./test-runtimes.ts";

const SUMMARY = `Programs from a packed install into an empty project, on each runtime and store. \`npm run test:runtimes\` repeats it.
"First program" is the one of the README. The others are in [test/runtimes](../test/runtimes): a handler that is ended at its deadline, a
workflow, a saga with a revoked timeout, a cron, an endless loop in a killed sandbox, a server with a remote worker, a transaction that is
rolled back and one that is committed, and a test in virtual time. Stores of memory and Redis have no transactions of the user's.`;

/** The summary and the tables of docs/runtimes.md, from the last `npm run test:runtimes`. */
export function runtimeSections(): [summary: string, sections: string[]] {
  const text = readFileSync(join(import.meta.dirname, "..", "docs", "runtimes.json"), "utf8");
  const results = JSON.parse(text) as RuntimeResult[];
  const onStores = results.filter(({ store }) => store !== "examples");
  const examples = results.filter(({ store }) => store === "examples");
  const refusals = results.filter(({ says }) => says !== undefined).map(refusal);
  return [
    SUMMARY,
    [
      `## Runtime × store × program\n\n${storeTable(onStores)}`,
      `## Runtime × example\n\nThe numbered [examples](../examples), compiled for Node 22. Each must print what its \`output.txt\` says.\n\n${exampleTable(examples)}`,
      `## What does not run\n\n${[...new Set(refusals)].join("\n")}\n`,
    ],
  ];
}

const refusal = ({ runtime, store, program, ok, says }: RuntimeResult) => {
  const where = store === "examples" ? `${runtime}, example ${program}` : `${runtime}, ${store}`;
  return `- ${where}${ok ? "" : `, ${program}`}: ${says?.replaceAll(/\s+/g, " ")}`;
};

const cell = (result: RuntimeResult | undefined) => {
  if (!result) return "–";
  if (!result.ok) return "**fails**";
  return result.says === undefined ? "runs" : "refused, with the fix";
};

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return `${[line(head), `|${"---|".repeat(head.length)}`, ...rows.map(line)].join("\n")}\n`;
}

function storeTable(results: readonly RuntimeResult[]): string {
  const programs = [...new Set(results.map(({ program }) => program))];
  const rows = Map.groupBy(results, ({ runtime, store }) => `${runtime} | ${store}`);
  return table(
    ["runtime", "store", ...programs.map((name) => name.replace("-", " "))],
    [...rows].map(([name, found]) => [
      name,
      ...programs.map((program) => cell(found.find((result) => result.program === program))),
    ]),
  );
}

function exampleTable(results: readonly RuntimeResult[]): string {
  const runtimes = [...new Set(results.map(({ runtime }) => runtime))];
  const rows = Map.groupBy(results, ({ program }) => program);
  return table(
    ["example", ...runtimes],
    [...rows].map(([name, found]) => [
      name,
      ...runtimes.map((runtime) => cell(found.find((result) => result.runtime === runtime))),
    ]),
  );
}
