import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");
const page = readFileSync(join(root, "docs/ojs/binding.md"), "utf8");
const rows = page.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| section"));
const named = [...page.matchAll(/([a-z-]+): "([^"]+)"/g)].map(([, file, name]) => ({ file, name }));

it("every test that the table of the binding names exists", () => {
  expect(named.length).toBeGreaterThan(45);
  const missing = named.filter(({ file, name }) => {
    const path = join(root, `test/server/${file}.test.ts`);
    return !existsSync(path) || !readFileSync(path, "utf8").includes(`"${name}"`);
  });
  expect(missing).toEqual([]);
});

it("a clause without a test is said to be open", () => {
  const clauses = rows.filter((row) => row.split("|").length === 6 && /\|\s+\|$/.test(row));
  expect(clauses.length).toBeGreaterThan(0);
  expect(clauses.filter((row) => !row.includes("open"))).toEqual([]);
});
