/**
 * Builds the documentation as a site into site/dist: pages from docs/, the API reference from the types. With `--serve` it shows
 * the site on loopback afterwards. The tools are in site/, which is installed once, and again when its lock file changes.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MODULES, writeApiEntries, writeApiIndex, writeApiParts } from "../site/api.ts";
import { stagePages } from "../site/stage.ts";

const SITE = join(import.meta.dirname, "..", "site");
const TYPEDOC = "node_modules/typedoc/bin/typedoc";
const STAMP = join(SITE, "node_modules", ".curfew-lock");

await installOnce();
stagePages();
writeApiEntries();
// The first run only asks which types are missing; the second one has them. It reads src itself, because TypeDoc names missing types
// only if they belong to the package of the files that it begins with.
const files = MODULES.map(({ file }) => `../${file}`);
const missing = await run("node", [TYPEDOC, "--emit", "none", "--logLevel", "Warn", ...files], "pipe");
console.log(`The API reference has ${writeApiParts(missing)} types that are parts of exported ones.`);
await run("node", [TYPEDOC]);
writeApiIndex();
await run("node", ["node_modules/vitepress/bin/vitepress.js", "build", "."]);
console.log("The site is in site/dist.");
if (process.argv.includes("--serve"))
  await run("node", [
    "node_modules/vitepress/bin/vitepress.js",
    "preview",
    ".",
    "--host",
    "127.0.0.1",
    ...port(),
  ]);

async function installOnce(): Promise<void> {
  const wanted = createHash("sha256")
    .update(readFileSync(join(SITE, "package-lock.json")))
    .digest("hex");
  if (existsSync(STAMP) && readFileSync(STAMP, "utf8") === wanted) return;
  await run("npm", ["ci"]);
  writeFileSync(STAMP, wanted);
}

function port(): string[] {
  const at = process.argv.indexOf("--port");
  const value = process.argv[at + 1];
  return at < 0 || value === undefined ? [] : ["--port", value];
}

/** Runs a command in site/. With "pipe" it prints nothing and returns what the command printed. */
async function run(
  command: string,
  args: readonly string[],
  output: "inherit" | "pipe" = "inherit",
): Promise<string> {
  const child = spawn(command, args, { cwd: SITE, stdio: ["inherit", output, output] });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (code !== 0)
    throw new Error(`docs:site: ${command} ${args.join(" ")} ended with ${code}; its output:\n${said}`);
  return said;
}
