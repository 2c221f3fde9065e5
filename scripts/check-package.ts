/** `npm run package`: packs what was built, and lets publint and attw read the archive as users get it. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = mkdtempSync(join(tmpdir(), "curfew-pack-"));
const run = (program: string, ...flags: string[]) => execFileSync(program, flags, { encoding: "utf8" });

try {
  // The build is done: `prepack` would repeat it.
  const report = run("npm", "pack", "--json", "--ignore-scripts", "--pack-destination", folder);
  const [{ filename, size, unpackedSize }] = JSON.parse(report) as [
    { filename: string; size: number; unpackedSize: number },
  ];
  const archive = join(folder, filename);
  console.log(run("publint", "run", archive, "--strict"));
  console.log(run("attw", archive, "--profile", "esm-only"));
  const megabytes = (bytes: number) => `${(bytes / 1_000_000).toFixed(1)} MB`;
  console.log(`${filename}: ${megabytes(size)}, unpacked ${megabytes(unpackedSize)}`);
} catch (error) {
  const { stdout, stderr } = error as { stdout?: string; stderr?: string };
  console.error(stdout, stderr);
  throw error;
} finally {
  rmSync(folder, { recursive: true });
}
