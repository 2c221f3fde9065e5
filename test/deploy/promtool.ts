import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const folder = join(import.meta.dirname, "../../.cache/promtool");
const unpacked = join(folder, "usr/bin/promtool");

/** Debian's promtool: installed, or unpacked from its package into .cache. Otherwise says why there is none. */
export async function findPromtool(): Promise<{ readonly path: string } | { readonly missing: string }> {
  const installed = await run("promtool", ["--version"]).then(
    () => true,
    () => false,
  );
  if (installed) return { path: "promtool" };
  if (existsSync(unpacked)) return { path: unpacked };
  try {
    mkdirSync(folder, { recursive: true });
    await run("apt-get", ["download", "prometheus"], { cwd: folder, timeout: 60_000 });
    const archive = readdirSync(folder).find((name) => name.endsWith(".deb"));
    if (archive === undefined) return { missing: "apt-get download brought no package" };
    await run("dpkg-deb", ["-x", join(folder, archive), folder]);
    return { path: unpacked };
  } catch (error) {
    return { missing: `promtool is not installed, and Debian's package cannot be had: ${String(error)}` };
  }
}
