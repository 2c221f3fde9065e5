import { execFile } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..");

/** Every page that people write; the generated ones are compared with the code they are drawn from elsewhere. */
const pages = ["", "docs", "docs/guides", "docs/adr", "site"].flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".md"))
    .map((name) => join(folder, name)),
);

interface Block {
  readonly page: string;
  /** The line of the fence in the page. */
  readonly line: number;
  readonly language: string;
  readonly text: string;
}

const blocks: Block[] = pages.flatMap((page) => {
  const text = readFileSync(join(root, page), "utf8");
  return [...text.matchAll(/^```(\w+)[^\n]*\n(.*?)^```$/gms)].map((match) => ({
    page,
    line: text.slice(0, match.index).split("\n").length,
    language: match[1] as string,
    text: match[2] as string,
  }));
});

/** What snippets may use without declaring it; a snippet's own declaration comes first. */
const PRELUDE = `
import type { Engine, JobDefinition, JobHandle, Middleware, Processor, Store, Worker } from "curfew";
import type { TestEngine } from "curfew/testing";
declare global {
  const engine: Engine;
  const worker: Worker;
  const test: TestEngine;
  const job: JobHandle<{ receipt: string }>;
  const chargeCard: JobDefinition<{ orderId: string; cents: number }, { orderId: string; cents: number }, { receipt: string }>;
  const chargeCardProcessor: Processor;
  const importCatalog: JobDefinition<undefined, undefined, undefined>;
  const orderId: string;
  const bank: {
    isOpen(): boolean;
    charge(cents: number, options: { idempotencyKey: string; signal: AbortSignal }): Promise<string>;
  };
  function openMyStore(path: string): Promise<Store>;
}
`;

/** `npm test` has built the package before: snippets are compiled against its declarations, in a third of the CPU. */
const isBuilt = process.env.CURFEW_BUILT === "1";
const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  exports: Record<string, string | { types: string }>;
};
const paths = Object.entries(exports).flatMap(([name, entry]) => {
  if (typeof entry === "string") return [];
  const source = entry.types.replace("./dist/", "./src/").replace(".d.ts", ".ts");
  return [[`curfew${name.slice(1)}`, [join(root, isBuilt ? entry.types : source)]]];
});

const TSCONFIG = {
  extends: "../../tsconfig.json",
  compilerOptions: {
    // As Nest applications are compiled.
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
    erasableSyntaxOnly: false,
    paths: Object.fromEntries(paths),
  },
  include: ["."],
};

/** Phrases that go out of date unnoticed: a document says what is, and a missing thing is simply said to be missing. */
const PLANNED = /\b(?:(?:is|are) planned|not\s+yet|no\s+dashboard|comes?\s+later)\b|\bnot\s+\w+\s+yet\b/gi;

/** What these phrases may say: a job that is not due, in a page generated from the lifecycle. */
const STILL_TO_COME: ReadonlySet<string> = new Set(["docs/lifecycle.md: not due yet"]);

/** Writes each snippet as a module of its own; one that begins with \`// name.ts\` is that file for its neighbours. */
function writeSnippets(folder: string): void {
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(TSCONFIG));
  writeFileSync(join(folder, "prelude.d.ts"), PRELUDE);
  for (const { page, line, text } of blocks.filter(({ language }) => language === "ts")) {
    const named = /^\/\/ ([a-z-]+\.ts)\n/.exec(text)?.[1];
    const target = join(folder, basename(page, ".md"), named ?? `line-${line}.ts`);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, text);
  }
}

describe("the documents", () => {
  it("hold only TypeScript that compiles", async () => {
    mkdirSync(join(root, ".cache"), { recursive: true });
    const folder = mkdtempSync(join(root, ".cache/docs-"));
    try {
      writeSnippets(folder);
      const compiler = join(root, "node_modules/.bin/tsc");
      const said = await run(compiler, ["-p", folder], { cwd: folder }).then(
        () => "",
        (error: { stdout: string; stderr: string }) => error.stdout + error.stderr,
      );
      // Errors in src are the types stage's to report.
      const ours = said.split("\n").filter((line) => line !== "" && !line.startsWith(relative(folder, root)));
      expect(ours).toEqual([]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it("have snippets in the README and in every guide", () => {
    const withSnippets = new Set(blocks.filter(({ language }) => language === "ts").map(({ page }) => page));
    const expected = pages.filter((page) => page === "README.md" || /^docs\/guides\/(?!README)/.test(page));
    expect(expected.filter((page) => !withSnippets.has(page))).toEqual([]);
  });

  it("name only npm scripts that exist", () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { scripts: object };
    const known = ["ci", "dedupe", "init", "install", "ls", "pack", "pkg", ...Object.keys(scripts)];
    const missing = pages.flatMap((page) =>
      [...readFileSync(join(root, page), "utf8").matchAll(/\bnpm (?:run )?([a-z]+)\b(?=[ `\n&])/g)]
        .map((match) => match[1] as string)
        .filter(
          (script) => !known.includes(script) && !["and", "puts", "itself", "or", "run"].includes(script),
        )
        .map((script) => `${page}: npm ${script}`),
    );
    expect(missing).toEqual([]);
  });

  it("announce nothing as planned", () => {
    const announced = pages
      .filter((page) => page !== "CHANGELOG.md")
      .flatMap((page) =>
        [...readFileSync(join(root, page), "utf8").matchAll(PLANNED)].map(([words]) => `${page}: ${words}`),
      );
    expect(announced.filter((line) => !STILL_TO_COME.has(line))).toEqual([]);
  });

  it("link only to what is there", () => {
    const missing = pages.flatMap((page) =>
      [...readFileSync(join(root, page), "utf8").matchAll(/\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)/g)]
        .map((match) => match[1] as string)
        .filter((target) => !existsSync(join(root, dirname(page), target)))
        .map((target) => `${page}: ${target}`),
    );
    expect(missing).toEqual([]);
  });
});
