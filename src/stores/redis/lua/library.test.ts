import { expect, it } from "vitest";
import { createLibrary } from "./library.ts";

/** The names that a chunk of Lua declares at its top level: `local a, b = …` and `local function c`. */
function topLevelNames(code: string): string[] {
  return code.split("\n").flatMap((line) => {
    const [, only] = /^local function (\w+)/.exec(line) ?? [];
    if (only !== undefined) return [only];
    const [, list] = /^local ([\w, ]+)/.exec(line) ?? [];
    return list?.split(",").map((name) => name.trim()) ?? [];
  });
}

it("the library has room for more names: Lua refuses to load one with more than 200", () => {
  const names = topLevelNames(createLibrary({ isCluster: true }).code);
  expect(new Set(names).size).toBe(names.length);
  expect(names).toContain("api");
  expect(names.length).toBeGreaterThan(100);
  expect(names.length).toBeLessThanOrEqual(180);
});

it("every function that clients call is one of the library", () => {
  const { code } = createLibrary({ isCluster: false });
  const registered = [...code.matchAll(/callback=api\.(\w+)/g)].map(([, name]) => name);
  const written = [...code.matchAll(/^function api\.(\w+)\(keys, args\)/gm)].map(([, name]) => name);
  expect(registered.length).toBeGreaterThan(30);
  expect(registered.toSorted()).toEqual(written.toSorted());
});
