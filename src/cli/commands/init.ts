import type { Command } from "commander";
import { withPage } from "../declare.ts";
import type { Initialised } from "../init/init.ts";
import { createOutput } from "../output/output.ts";
import { dim } from "../output/paint.ts";

interface InitOptions {
  readonly store: string;
  readonly json?: boolean;
}

export function register(command: Command): void {
  command
    .description("Write a typed starter: a job, a worker, a web server that enqueues, and a test.")
    .argument("[folder]", "where to write it; this folder if it is left out")
    .option("--store <address>", "the store that it uses: sqlite:<file> or postgres://…", "sqlite:curfew.db");
  withPage(command, {
    examples: [
      ["init", "into this folder"],
      ["init my-app --store postgres://localhost/my_app", "into a new folder, with PostgreSQL"],
    ],
    json: '{"folder","written":[path],"kept":[path],"setup":[command],"scripts"}',
    more: "It asks nothing and changes no file that exists. A project with Vitest gets a Vitest test, others one for node --test.",
  }).action(async (folder: string | undefined, { store, json }: InitOptions) => {
    const { init } = await import("../init/init.ts");
    const output = createOutput(json === true);
    const result = init(folder ?? ".", store);
    output.answer(result, () => resultText(result));
  });
}

function resultText({ folder, written, kept, setup, scripts }: Initialised): string {
  const enter = folder === "." ? [] : [`cd ${folder}`];
  const lines = [
    ...written.map((path) => `wrote  ${path}`),
    ...kept.map((path) => dim(`kept   ${path}, which exists`)),
  ];
  if (written.length === 0) return [...lines, "", "Nothing was written: all files exist."].join("\n");
  const next = [
    ...enter,
    ...setup,
    ...(scripts.isWritten
      ? ["npm test", "npm run worker", "npm run web"]
      : [scripts.test, `npx ${scripts.worker}`, scripts.web]),
  ];
  return [...lines, "", "Next:", ...next.map((line) => `  ${line}`)].join("\n");
}
