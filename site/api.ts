import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { type Entry, PAGES } from "./layout.ts";

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

const KINDS: Readonly<Record<string, string>> = {
  functions: "Functions",
  classes: "Classes",
  interfaces: "Interfaces",
  "type-aliases": "Types",
  variables: "Variables",
};

/** The sidebars of the API reference by path, from the pages that TypeDoc wrote. Each lists one module whole: all would be too much. */
export function apiSidebars(): Record<string, Entry[]> {
  const pages = [
    { name: "", path: "/api/" },
    ...MODULES.map(({ name }) => ({ name, path: `/api/${name}/` })),
  ];
  return Object.fromEntries(pages.map(({ name, path }) => [path, sidebarOf(name)]));
}

function sidebarOf(open: string): Entry[] {
  const modules = MODULES.map(({ name }) => ({ text: name, link: `/api/${name}/` }));
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
