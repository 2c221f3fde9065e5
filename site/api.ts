import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { type Entry, PAGES, ROOT } from "./layout.ts";

/** The modules of the package: what users import, the file behind it, and what it is for. */
export const MODULES: readonly { readonly name: string; readonly file: string; readonly about: string }[] = [
  { name: "curfew", file: "src/index.ts", about: "Jobs, sagas, workflows and the engine that runs them." },
  {
    name: "curfew/calls",
    file: "src/calls/index.ts",
    about: "Limits for any async function, request or stream.",
  },
  {
    name: "curfew/client",
    file: "src/client/index.ts",
    about: "Enqueue and work over HTTP, without a database.",
  },
  { name: "curfew/nestjs", file: "src/nestjs/index.ts", about: "The module for NestJS." },
  {
    name: "curfew/nestjs/testing",
    file: "src/nestjs/testing.ts",
    about: "NestJS applications in virtual time.",
  },
  {
    name: "curfew/server",
    file: "src/server/index.ts",
    about: "The HTTP server, to mount or to start yourself.",
  },
  {
    name: "curfew/testing",
    file: "src/testing/index.ts",
    about: "Engines in virtual time, and the kit for stores.",
  },
  {
    name: "curfew/timeouts",
    file: "src/timeouts.ts",
    about: "The store of timeouts, without jobs or sagas.",
  },
  { name: "curfew/tracing", file: "src/tracing.ts", about: "Spans for OpenTelemetry." },
];

/** The folder of files that TypeDoc begins with. They give each module the name that users import. */
export const ENTRIES = join(import.meta.dirname, "entries");

export function writeApiEntries(): void {
  rmSync(ENTRIES, { recursive: true, force: true });
  mkdirSync(ENTRIES, { recursive: true });
  for (const { name, file, about } of MODULES) {
    const text = `/**\n * ${about}\n * @module ${name}\n */\nexport * from "../../${file}";\n`;
    writeFileSync(join(ENTRIES, `${name.replaceAll("/", "-")}.ts`), text);
  }
}

/** Where the reference has types that exported ones are made of, such as `Engine["crons"]`. No user imports it. */
const PARTS = "parts";

/** The types that TypeDoc misses, from its warnings, as one more file to begin with. Returns how many there are. */
export function writeApiParts(warnings: string): number {
  const lines = new Map<string, string>();
  for (const [, name = "", file = ""] of warnings.matchAll(
    /(\w+), defined in \S*?\/(src\/\S+\.ts), is referenced by/g,
  )) {
    const text = readFileSync(join(ROOT, file), "utf8");
    // A type that its own file keeps to itself cannot be shown, and of two with one name the first is.
    if (
      !lines.has(name) &&
      new RegExp(`^export (?:abstract )?(?:class|interface|type) ${name}\\b`, "m").test(text)
    )
      lines.set(name, `export type { ${name} } from "../../${file}";`);
  }
  const about = [
    "/**",
    " * Types that exported ones are made of. The package does not export them by name: reach them through the others, as in",
    ' * `Engine["crons"]` or `Parameters<typeof defineJob>[0]`.',
    ` * @module ${PARTS}`,
    " */",
  ];
  writeFileSync(join(ENTRIES, `${PARTS}.ts`), `${[...about, ...[...lines.values()].sort()].join("\n")}\n`);
  return lines.size;
}

/** The first page of the reference: what to import for what. */
export function apiIndex(): string {
  const rows = MODULES.map(({ name, about }) => `| [\`${name}\`](${name}/index.md) | ${about} |`);
  return [
    "# API reference",
    "",
    "What the package exports, from its types. [Options](../options.md) has every option in one table, and [errors](../errors.md) every code.",
    "",
    "| import | for |",
    "|---|---|",
    ...rows,
    "",
    `[Parts](${PARTS}/index.md) has the types that exported ones are made of, such as \`Engine["crons"]\`. No program imports them by name.`,
    "",
    "Most programs begin with [`defineJob`](curfew/functions/defineJob.md), [`processor`](curfew/functions/processor.md) and",
    "[`openEngine`](curfew/functions/openEngine.md), which gives an [`Engine`](curfew/interfaces/Engine.md).",
    "",
  ].join("\n");
}

/** Replaces the list of modules that TypeDoc wrote. */
export function writeApiIndex(): void {
  writeFileSync(join(PAGES, "api/index.md"), apiIndex());
}

const KINDS: Readonly<Record<string, string>> = {
  functions: "Functions",
  classes: "Classes",
  interfaces: "Interfaces",
  "type-aliases": "Types",
  variables: "Variables",
};

/** The sidebars of the API reference by path, from the pages that TypeDoc wrote. Each lists one module whole: all would be too much. */
export function apiSidebars(): Record<string, Entry[]> {
  const names = ["", ...MODULES.map(({ name }) => name), PARTS];
  return Object.fromEntries(names.map((name) => [name === "" ? "/api/" : `/api/${name}/`, sidebarOf(name)]));
}

function sidebarOf(open: string): Entry[] {
  const modules = [...MODULES.map(({ name }) => name), PARTS].map((name) => ({
    text: name,
    link: `/api/${name}/`,
  }));
  const kinds = Object.entries(KINDS).flatMap(([folder, text]) => kindEntry(`api/${open}/${folder}`, text));
  const own = open === "" ? [] : [{ text: open, items: kinds }];
  return [{ text: "Modules", items: [{ text: "← Guides", link: "/guides/quickstart" }, ...modules] }, ...own];
}

function kindEntry(folder: string, text: string): Entry[] {
  const names = readOrNothing(join(PAGES, folder)).filter((name) => name.endsWith(".md"));
  if (names.length === 0) return [];
  const items = names.map((name) => ({
    text: basename(name, ".md"),
    link: `/${folder}/${basename(name, ".md")}`,
  }));
  return [{ text, collapsed: false, items }];
}

function readOrNothing(folder: string): string[] {
  try {
    return readdirSync(folder).sort((a, b) => a.localeCompare(b));
  } catch {
    return [];
  }
}
