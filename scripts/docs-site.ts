/**
 * Builds the documentation as a site into site/dist: pages from docs/, the API reference from the types. With `--serve` it shows
 * the site on loopback afterwards. The tools are in site/, which is installed once, and again when its lock file changes.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeApiEntries } from "../site/api.ts";
import { stagePages } from "../site/stage.ts";

const SITE = join(import.meta.dirname, "..", "site");
const STAMP = join(SITE, "node_modules", ".curfew-lock");

await installOnce();
stagePages();
writeApiEntries();
await run("node", ["node_modules/typedoc/bin/typedoc"]);
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

async function run(command: string, args: readonly string[]): Promise<void> {
  const child = spawn(command, args, { cwd: SITE, stdio: "inherit" });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", resolve);
  });
  if (code !== 0)
    throw new Error(`docs:site: ${command} ${args.join(" ")} ended with ${code}; its output is above`);
}
