/**
 * Builds src/dashboard into dist/dashboard. With `--if-old` only where the build is missing or older than its sources:
 * `npm start` calls it so. Where vite is not installed it says so, and the server runs without the dashboard.
 */
import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { styleText } from "node:util";

const root = join(import.meta.dirname, "..");
const source = join(root, "src", "dashboard");
/** It shares names and types of the wire with the server. */
const shared = join(root, "src", "ojs");
const target = join(root, "dist", "dashboard");

/** When the newest of these files was written; 0 where there are none. */
function newest(paths: readonly string[]): number {
  return Math.max(0, ...paths.map((path) => statSync(path).mtimeMs));
}

function filesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

function isOld(): boolean {
  try {
    const builtAt = statSync(join(target, "index.html")).mtimeMs;
    return newest([...filesOf(source), ...filesOf(shared), import.meta.filename]) > builtAt;
  } catch {
    return true;
  }
}

async function build(): Promise<void> {
  const from = performance.now();
  const say = (text: string) => process.stderr.write(`${styleText("dim", text)}\n`);
  const vite = await import("vite").catch(() => undefined);
  if (!vite) {
    say("The dashboard is not built: vite is not installed. Run npm install, then npm run dashboard.");
    return;
  }
  process.stderr.write(styleText("dim", "Building the dashboard … "));
  rmSync(target, { recursive: true, force: true });
  await vite.build({
    root: source,
    base: "./",
    configFile: false,
    logLevel: "error",
    build: { outDir: target, emptyOutDir: true, target: "es2022", assetsInlineLimit: 0, cssCodeSplit: false },
  });
  say(`${((performance.now() - from) / 1_000).toFixed(1)} s`);
}

if (!process.argv.includes("--if-old") || isOld()) await build();
