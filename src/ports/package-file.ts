import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { extname } from "node:path";
import { pathToFileURL } from "node:url";

/*
 * The build keeps this module as it is, so that it knows where it lies; all other code may be anywhere. It imports nothing of
 * curfew: that would be a second copy.
 */

/**
 * A file of this package, by its path below `src` or `dist` without its extension. Undefined if this code is in a bundle and
 * curfew is not installed beside it.
 */
export function findPackageFile(path: string): URL | undefined {
  const beside = new URL(`../${path}${extname(import.meta.url)}`, import.meta.url);
  if (existsSync(beside)) return beside;
  const installed = installedFolder();
  return installed && new URL(`dist/${path}.js`, installed);
}

/** The folder of the built dashboard, or undefined if this code is in a bundle and curfew is not installed. */
export function dashboardFolder(): URL | undefined {
  const folder = ownFolder();
  return folder && new URL("dist/dashboard/", folder);
}

export function packageVersion(): string {
  const folder = ownFolder();
  return folder ? manifestIn(folder).version : "bundled";
}

/** The folder of package.json. A program that a bundler made has another manifest there, or none. */
function ownFolder(): URL | undefined {
  const folder = new URL("../../", import.meta.url);
  const isOwn = existsSync(new URL("package.json", folder)) && manifestIn(folder).name === "curfew";
  return isOwn ? folder : installedFolder();
}

function manifestIn(folder: URL): { readonly name: string; readonly version: string } {
  return JSON.parse(readFileSync(new URL("package.json", folder), "utf8"));
}

/** The package as this program would find it if it were not bundled. */
function installedFolder(): URL | undefined {
  try {
    return new URL("./", pathToFileURL(createRequire(import.meta.url).resolve("curfew/package.json")));
  } catch {
    return undefined;
  }
}
