import { afterEach, expect, it, vi } from "vitest";
import { builtinSqlite } from "./builtin-sqlite.ts";
import { defaultBinding } from "./find-binding.ts";

afterEach(() => vi.restoreAllMocks());

it("a file is opened with the SQLite of Node itself", async () => {
  expect(await defaultBinding()).toMatchObject({ name: "node:sqlite", isShared: true });
});

it.each([
  ["has none", undefined],
  // As in Node 22.14 and 22.15.
  ["has one without backups", { DatabaseSync: class {}, StatementSync: class {} }],
])("a file is opened with better-sqlite3 if Node %s", async (_, found) => {
  vi.spyOn(process, "getBuiltinModule").mockReturnValue(found as never);
  expect(await defaultBinding()).toMatchObject({ name: "better-sqlite3", isShared: true });
});

it("loading the SQLite of Node prints no warning about it, and leaves other warnings alone", () => {
  const printed: unknown[] = [];
  const warn = process.emitWarning;
  process.emitWarning = ((warning: unknown) => printed.push(warning)) as typeof warn;
  vi.spyOn(process, "getBuiltinModule").mockImplementation(() => {
    process.emitWarning("SQLite is an experimental feature and might change at any time");
    process.emitWarning("the disk is nearly full");
    return undefined;
  });
  try {
    builtinSqlite();
    process.emitWarning("SQLite is an experimental feature, says another part of the program");
  } finally {
    process.emitWarning = warn;
  }
  expect(printed).toEqual([
    "the disk is nearly full",
    "SQLite is an experimental feature, says another part of the program",
  ]);
});
