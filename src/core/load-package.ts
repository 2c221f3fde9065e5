import { CurfewError } from "./errors.ts";

/**
 * Packages that only some programs need, with the versions that fit. package.json names the same ones as optional peers:
 * users install them, so a program has one copy of each.
 */
export const OPTIONAL_PACKAGES = {
  "@hono/node-server": "^2.1.0",
  "@opentelemetry/api": "^1.9.0",
  ajv: "^8.17.1",
  "better-sqlite3": "^13.0.0",
  hono: "^4.10.0",
  ioredis: "^6.0.0",
  mongodb: "^7.0.0",
  pg: "^8.16.0",
  re2js: "^2.8.0",
  zod: "^4.1.0",
} as const;

type OptionalPackage = keyof typeof OPTIONAL_PACKAGES;

/** What the server needs, and every command that works on a store. */
export const SERVER_PACKAGES = ["hono", "@hono/node-server", "zod"] as const;

/**
 * For the `catch` of a dynamic import: if one of the packages is missing, the error names all of them in the command that
 * installs them. Any other error stays as it is. With a `catch` at the import itself, bundlers accept that a package is
 * missing.
 */
export function ifMissing(
  names: OptionalPackage | readonly OptionalPackage[],
  user: string,
): (error: unknown) => never {
  return (error) => {
    const all = [names].flat() as OptionalPackage[];
    const missing = all.find((name) => isMissing(error, name));
    if (!missing) throw error;
    const command = `npm install ${all.map((name) => `${name}@${OPTIONAL_PACKAGES[name]}`).join(" ")}`;
    const says = `${user} needs the package ${missing}; run: ${command}`;
    throw new CurfewError("missing_package", says, { cause: error });
  };
}

/** Node and Bun name the package in the message only. */
function isMissing(error: unknown, name: string): boolean {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  if (code !== "ERR_MODULE_NOT_FOUND" && code !== "MODULE_NOT_FOUND") return false;
  return new RegExp(`Cannot find (?:package|module) ['"]${name}(?:/[^'"]*)?['"]`).test(String(message));
}
