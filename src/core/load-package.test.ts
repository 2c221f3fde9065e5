import { describe, expect, it } from "vitest";
import { loadPackage } from "./load-package.ts";

function notFound(message: string): Error {
  return Object.assign(new Error(message), { code: "ERR_MODULE_NOT_FOUND" });
}

const fail = (error: unknown) => () => Promise.reject(error);

describe("a package that is loaded when it is used", () => {
  it("is named with the command that installs it and what it is used with, if it is missing", async () => {
    const cause = notFound(
      "Cannot find package 'hono' imported from /app/node_modules/curfew/dist/server/app.js",
    );
    const loading = loadPackage(["hono", "zod"], "The server", fail(cause));
    await expect(loading).rejects.toMatchObject({
      code: "missing_package",
      message: "The server needs the package hono: npm install hono@^4.10.0 zod@^4.1.0",
      cause,
    });
  });

  it.each([
    "Cannot find package 'pg-pool' imported from /app/node_modules/pg/lib/index.js",
    "Cannot find module '/app/node_modules/pg/lib/client.js'",
  ])("is not blamed for another one: %s", async (message) => {
    const error = notFound(message);
    await expect(loadPackage("pg", "The PostgreSQL store", fail(error))).rejects.toBe(error);
  });
});
