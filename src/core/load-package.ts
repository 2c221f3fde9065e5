import { CurfewError } from "./errors.ts";

/**
 * Packages that only some programs need, with the versions that fit. package.json names the same ones as optional peers:
 * users install them, so a program has one copy of each.
 */
export const OPTIONAL_PACKAGES = {
  "@hono/node-server": "^2.1.0",
  "@opentelemetry/api": "^1.9.0",
  "better-sqlite3": "^13.0.0",
  hono: "^4.10.0",
  pg: "^8.16.0",
  zod: "^4.1.0",
} as const;

type OptionalPackage = keyof typeof OPTIONAL_PACKAGES;

/** Loads a module that needs an optional package. If that is missing, the error says how to install it. */
export async function loadPackage<Module>(
  names: OptionalPackage | readonly OptionalPackage[],
  user: string,
  load: () => Promise<Module>,
): Promise<Module> {
  try {
    return await load();
  } catch (error) {
    throw missingPackage([names].flat() as OptionalPackage[], user, error);
  }
}

/** The error with the command that installs what is missing. Any other error is returned unchanged. */
export function missingPackage(names: readonly OptionalPackage[], user: string, error: unknown): unknown {
  const missing = names.find((name) => isMissing(error, name));
  if (!missing) return error;
  const command = `npm install ${names.map((name) => `${name}@${OPTIONAL_PACKAGES[name]}`).join(" ")}`;
  return new CurfewError("missing_package", `${user} needs the package ${missing}: ${command}`, {
    cause: error,
  });
}

/** Node and Bun name the package in the message only. */
function isMissing(error: unknown, name: string): boolean {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  if (code !== "ERR_MODULE_NOT_FOUND" && code !== "MODULE_NOT_FOUND") return false;
  return new RegExp(`Cannot find (?:package|module) ['"]${name}(?:/[^'"]*)?['"]`).test(String(message));
}
