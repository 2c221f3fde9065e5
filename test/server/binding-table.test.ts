import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");
const page = readFileSync(join(root, "docs/ojs/binding.md"), "utf8");
const named = [...page.matchAll(/([a-z-]+): "([^"]+)"/g)].map(([, file, name]) => ({ file, name }));

it("every test that the table of the binding names exists", () => {
  expect(named.length).toBeGreaterThan(45);
  const missing = named.filter(({ file, name }) => {
    const path = join(root, `test/server/${file}.test.ts`);
    return !existsSync(path) || !readFileSync(path, "utf8").includes(`"${name}"`);
  });
  expect(missing).toEqual([]);
});

it("every clause has a test, and no row is broken", () => {
  const table = page.slice(0, page.indexOf("## Contradictions")).split("\n");
  const clauses = table.filter((line) => line.startsWith("| ") && !/^\| (section|extension) /.test(line));
  expect(clauses.length).toBeGreaterThan(80);
  const named = /[a-z-]+: "[^"]+"|suite: [a-z0-9/-]+/;
  expect(
    clauses.filter((row) => row.split("|").length !== 6 || !named.test(row.split("|")[4] ?? "")),
  ).toEqual([]);
  const contradictions = page.slice(page.indexOf("## Contradictions")).split("\n");
  const differing = contradictions.filter((line) => line.startsWith("| ") && !line.startsWith("| about "));
  expect(differing.length).toBeGreaterThan(35);
  expect(differing.filter((row) => row.split("|").length !== 5)).toEqual([]);
});
