/** Bun and bunqueue, which no other part of the project needs. Both come from npm into .cache, when they are first measured. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const FOLDER = join(import.meta.dirname, "..", ".cache", "bunqueue");
const BUN = join(FOLDER, "node_modules", "bun", "bin", "bun");
export const BUNQUEUE_CLIENT = join(FOLDER, "node_modules", "bunqueue", "dist", "client", "index.js");
const PACKAGES = ["bunqueue@2.9.5", `bun@npm:@oven/bun-${process.platform}-${process.arch}@1.4.4`];

/** The program of Bun; undefined if npm cannot bring it. */
export function installedBun(): string | undefined {
  if (existsSync(BUN) && existsSync(BUNQUEUE_CLIENT)) return BUN;
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, "package.json"), '{ "private": true, "type": "module" }\n');
  const args = ["install", "--no-audit", "--no-fund", "--ignore-scripts", ...PACKAGES];
  const { status, stderr } = spawnSync("npm", args, { cwd: FOLDER, encoding: "utf8" });
  if (status === 0 && existsSync(BUN)) return BUN;
  console.error(`SKIPPED: npm could not install ${PACKAGES.join(" and ")}\n${stderr}`);
  return undefined;
}
