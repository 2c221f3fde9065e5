/** Lints docs/openapi.json with Redocly and Spectral: `npm run lint:openapi`. Errors fail. */
import { spawnSync } from "node:child_process";

const DOCUMENT = "docs/openapi.json";

function lint(name: string, command: string, flags: readonly string[]): boolean {
  const { status } = spawnSync(command, flags, { stdio: "inherit" });
  console.log(`${name}: ${status === 0 ? "fine" : "errors"}`);
  return status === 0;
}

const results = [
  lint("redocly", "redocly", ["lint", DOCUMENT]),
  lint("spectral", process.execPath, ["tools/openapi/spectral.js", DOCUMENT]),
];
process.exitCode = results.every((isFine) => isFine) ? 0 : 1;
