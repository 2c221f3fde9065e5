import { CurfewError } from "../core/errors.ts";
import { findPackageFile } from "./package-file.ts";

/** A file of this package that a process or a thread starts with, by its path below `src` or `dist` without extension. */
export function startFile(path: string): URL {
  const file = findPackageFile(path);
  if (file) return file;
  throw new CurfewError(
    "missing_package",
    `${path}.js of curfew is not beside this program, which a bundler seems to have made; run npm install curfew where it ` +
      "runs, or keep curfew out of the bundle (esbuild --external:curfew)",
  );
}
