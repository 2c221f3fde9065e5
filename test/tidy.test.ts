import { expect, it } from "vitest";
import { systemCalls } from "./tidy/calls.ts";
import { lostCauses } from "./tidy/causes.ts";
import { importCycles, importDirections } from "./tidy/imports.ts";
import { fileNames, glossary, uniqueNames } from "./tidy/names.ts";
import { shortLimits } from "./tidy/patience.ts";
import { retiredPhrases } from "./tidy/phrases.ts";
import { sizes } from "./tidy/size.ts";
import { type Finding, parseTree, readTree, report } from "./tidy/source.ts";
import { machineTraces, silencedTests, typeHoles } from "./tidy/text.ts";
import { writePath } from "./tidy/write-path.ts";

const files = readTree();
const sources = parseTree(files);

/** Each rule with what it protects; test/tidy/rules.test.ts shows that each of them can fail. */
const rules: [name: string, check: () => Finding[]][] = [
  ["imports go one way and core is pure", () => importDirections(sources)],
  ["imports form no cycles", () => importCycles(sources)],
  ["time and chance are injected", () => systemCalls(sources)],
  ["there is one write path", () => writePath(sources)],
  ["errors carry their cause", () => lostCauses(sources)],
  ["files and functions are short", () => sizes(sources)],
  ["exported names keep to the glossary", () => glossary(sources)],
  ["no test is silenced", () => silencedTests(sources)],
  ["no test has less time than the others", () => shortLimits(sources)],
  ["the types have no holes", () => typeHoles(sources)],
  ["nothing names a registry or this machine", () => machineTraces(files)],
  ["file names are kebab-case", () => fileNames(files)],
  ["a file name leads to one file", () => uniqueNames(files)],
  ["test names and comments use plain words", () => retiredPhrases(files)],
];

it.each(rules)("%s", (_name, check) => {
  expect(report(check())).toBe("");
});

it("sees the tree", () => {
  expect(sources.map(({ path }) => path)).toContain("test/tidy.test.ts");
  expect(files.map(({ path }) => path)).toContain("package.json");
});
