import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ifMissing, OPTIONAL_PACKAGES } from "./load-package.ts";

function notFound(message: string): Error {
  return Object.assign(new Error(message), { code: "ERR_MODULE_NOT_FOUND" });
}

const fail = (error: unknown) => () => Promise.reject(error);

describe("a package that is loaded when it is used", () => {
  it("is named with the command that installs it and what it is used with, if it is missing", async () => {
    const cause = notFound(
      "Cannot find package 'hono' imported from /app/node_modules/curfew/dist/server/app.js",
    );
    const loading = fail(cause)().catch(ifMissing(["hono", "zod"], "The server"));
    await expect(loading).rejects.toMatchObject({
      code: "missing_package",
      message: "The server needs the package hono; run: npm install hono@^4.10.0 zod@^4.1.0",
      cause,
    });
  });

  it.each([
    "Cannot find package 'pg-pool' imported from /app/node_modules/pg/lib/index.js",
    "Cannot find module '/app/node_modules/pg/lib/client.js'",
  ])("is not blamed for another one: %s", async (message) => {
    const error = notFound(message);
    await expect(fail(error)().catch(ifMissing("pg", "The PostgreSQL store"))).rejects.toBe(error);
  });

  it("is an optional peer in package.json, in the same versions", () => {
    const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
    const { peerDependencies, peerDependenciesMeta, devDependencies } = JSON.parse(text);
    for (const [name, versions] of Object.entries(OPTIONAL_PACKAGES)) {
      expect({ name, versions: peerDependencies[name] }).toEqual({ name, versions });
      expect({ name, ...peerDependenciesMeta[name] }).toEqual({ name, optional: true });
      expect(Object.keys(devDependencies)).toContain(name);
    }
  });
});
