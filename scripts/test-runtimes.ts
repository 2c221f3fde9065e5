/**
 * `npm run test:runtimes [-- --runtime "Bun 1.4.4" --program sandbox --archive curfew-0.1.0.tgz]`: packs curfew, installs it into empty projects, and runs the README's first
 * program and those of test/runtimes on every store, and the numbered examples, with several runtimes. They are installed from
 * npm into .cache/runtimes. The result is docs/runtimes.json, from which `npm run docs` writes docs/runtimes.md. It fails if a
 * program fails that is expected to run.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { createDatabase, startPostgres } from "../test/postgres.ts";
import { DURABLE, startRedis } from "../test/redis.ts";
import { compileExamples, wantedOutput } from "./compiled-examples.ts";
import {
  complaintOf,
  emptyProject,
  FIRST,
  installRuntimes,
  pack,
  RUNTIMES,
  type Runtime,
  run,
} from "./runtimes.ts";

const root = join(import.meta.dirname, "..");
const results = join(root, "docs", "runtimes.json");

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

const project = (archive: string, packages: readonly string[]) =>
  emptyProject(archive, [...SHARED, ...packages]);

/** Runs a file with a runtime, and says whether it did what is expected of it there. */
async function attempt(
  { runtime, store, program }: Omit<RuntimeResult, "ok" | "says"> & { readonly runtime: Runtime },
  file: string,
  wanted: string,
  env: Readonly<Record<string, string>>,
): Promise<RuntimeResult> {
  const isThis = (rule: (typeof REFUSED)[number]) =>
    rule.runtime === runtime && rule.where.test(`${store}, ${program}`);
  const refused = REFUSED.find(isThis)?.says;
  const says = await complaintOf(runtime, file, wanted, env);
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
  await installRuntimes(runtimes);
  const packed = mkdtempSync(join(tmpdir(), "curfew-packed-"));
  if (!values.archive) await run("npm", ["run", "build"], { cwd: root });
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
