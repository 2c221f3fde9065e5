/**
 * Lints docs/openapi.json with Redocly and Spectral: `npm run lint:openapi`. Errors fail. Spectral brings 150 packages, too
 * many for every install, so npx gets it at this version.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const SPECTRAL = "@stoplight/spectral-cli@6.16.3";
const DOCUMENT = "docs/openapi.json";

function lint(command: string, flags: readonly string[]): boolean {
  const { status } = spawnSync(
    "npx",
    [command, ...flags].filter((flag) => flag !== ""),
    { stdio: "inherit" },
  );
  return status === 0;
}

const folder = mkdtempSync(join(tmpdir(), "curfew-openapi-"));
const rules = join(folder, "rules.json");
writeFileSync(rules, JSON.stringify({ extends: ["spectral:oas"] }));
const isRedoclyFine = lint("redocly", ["lint", DOCUMENT]);
const isSpectralFine = lint("--yes", [
  SPECTRAL,
  "lint",
  DOCUMENT,
  "--ruleset",
  rules,
  "--fail-severity",
  "error",
]);
rmSync(folder, { recursive: true, force: true });
console.log(`redocly: ${isRedoclyFine ? "fine" : "errors"}, spectral: ${isSpectralFine ? "fine" : "errors"}`);
process.exitCode = isRedoclyFine && isSpectralFine ? 0 : 1;
