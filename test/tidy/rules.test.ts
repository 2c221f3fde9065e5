import { describe, expect, it } from "vitest";
import { systemCalls } from "./calls.ts";
import { lostCauses } from "./causes.ts";
import { importCycles, importDirections } from "./imports.ts";
import { fileNames, glossary, uniqueNames, wordsOf } from "./names.ts";
import { shortLimits } from "./patience.ts";
import { retiredPhrases } from "./phrases.ts";
import { sizes } from "./size.ts";
import { type Finding, parse, report, type Source } from "./source.ts";
import { machineTraces, silencedTests, typeHoles } from "./text.ts";
import { writePath } from "./write-path.ts";

type Rule = (sources: readonly Source[]) => Finding[];

function check(rule: Rule, path: string, text: string): Finding[] {
  return rule([parse({ path, text })]);
}

function lines(count: number, line = "  n += 1;"): string {
  return `${line}\n`.repeat(count);
}

describe("report", () => {
  it("names file, line, problem and fix", () => {
    const found = check(systemCalls, "src/engine/worker/worker.ts", "const a = 1;\nconst b = Date.now();\n");
    expect(report(found)).toBe(
      "src/engine/worker/worker.ts:2 uses Date.now.\n    Take time and randomness from the injected clock and random; " +
        "only src/engine/runtime/real-system.ts touches the real ones.",
    );
  });

  it("refuses a file it cannot parse instead of passing it", () => {
    expect(() => parse({ path: "src/a.ts", text: "const = ;" })).toThrow("src/a.ts cannot be parsed");
  });
});

describe("import directions", () => {
  it.each([
    ["src/core/job/lifecycle.ts", 'import { readFile } from "node:fs";'],
    ["src/core/job/lifecycle.ts", 'import { z } from "zod";'],
    ["src/core/job/lifecycle.ts", 'import type { Store } from "../../ports/store.ts";'],
    ["src/ports/store.ts", 'import { Engine } from "../engine/engine.ts";'],
    ["src/engine/engine.ts", 'import { memory } from "../stores/memory/store.ts";'],
    ["src/engine/engine.ts", 'export * from "../server/wire.ts";'],
    ["src/stores/sqlite/store.ts", 'import { Engine } from "../../engine/engine.ts";'],
    ["src/sandbox/pool.ts", 'type Engine = import("../engine/engine.ts").Engine;'],
    ["src/server/routes/jobs.ts", 'import { openEngine } from "../../open.ts";'],
    ["src/ojs/wire-types.ts", 'const pool = await import("../sandbox/pool.ts");'],
    ["src/open.ts", 'import { serve } from "./server/serve.ts";'],
    ["src/cli/main.ts", 'import { sqlite } from "../stores/sqlite/store.ts";'],
    ["src/testing/sim-clock.ts", 'import { sqlite } from "../stores/sqlite/store.ts";'],
    ["src/engine/engine.ts", 'import { simClock } from "../testing/index.ts";'],
    ["src/engine/engine.ts", 'import { simClock } from "curfew/testing";'],
    ["src/cli/main.ts", 'import { openEngine } from "../index.ts";'],
    ["src/index.ts", 'export * from "./testing/index.ts";'],
    ["src/index.ts", 'export * from "../test/postgres.ts";'],
    ["src/misc/thing.ts", 'import { a } from "../core/time.ts";'],
  ])("refuses %s: %s", (path, text) => {
    expect(check(importDirections, path, text)).toHaveLength(1);
  });

  it.each([
    ["src/core/job/lifecycle.ts", 'import { instant } from "../time.ts";'],
    ["src/core/job/decide.test.ts", 'import { readFile } from "node:fs";'],
    ["src/core/timeout/wall-clock.ts", 'import { Temporal } from "temporal-polyfill";'],
    ["src/engine/engine.ts", 'import { EventEmitter } from "node:events";'],
    ["src/stores/sqlite/store.ts", 'import { codec } from "../sql/row-codec.ts";'],
    ["src/client/worker.ts", 'import { pool } from "../sandbox/pool.ts";'],
    ["src/open.ts", 'import { memory } from "./stores/memory/store.ts";'],
    ["src/cli/main.ts", 'import { openEngine } from "../open.ts";'],
    ["src/index.ts", 'export { openEngine } from "./open.ts";'],
    ["src/testing/index.ts", 'export { simClock } from "./sim-clock.ts";'],
    ["test/stores/memory.test.ts", 'import { conformance } from "../../src/testing/index.ts";'],
    ["src/core/time.ts", '// import { readFile } from "node:fs";\nconst text = \'import "node:fs"\';'],
  ])("accepts %s: %s", (path, text) => {
    expect(check(importDirections, path, text)).toEqual([]);
  });
});

describe("import cycles", () => {
  function tree(files: Record<string, string>): Source[] {
    return Object.entries(files).map(([path, text]) => parse({ path, text }));
  }

  it("names the files of a cycle", () => {
    const sources = tree({
      "src/core/a.ts": 'import { b } from "./b.ts";',
      "src/core/b.ts": 'export { c } from "./job/c.ts";',
      "src/core/job/c.ts": 'import type { A } from "../a.ts";',
    });
    const [found, ...more] = importCycles(sources);
    expect(more).toEqual([]);
    expect(found?.says).toContain("src/core/a.ts -> src/core/b.ts -> src/core/job/c.ts -> src/core/a.ts");
  });

  it("finds a file that imports itself", () => {
    expect(importCycles(tree({ "src/a.ts": 'import { b } from "./a.ts";' }))).toHaveLength(1);
  });

  it("accepts a diamond", () => {
    const sources = tree({
      "src/a.ts": 'import "./b.ts"; import "./c.ts";',
      "src/b.ts": 'import "./d.ts";',
      "src/c.ts": 'import "./d.ts";',
      "src/d.ts": "export const d = 1;",
    });
    expect(importCycles(sources)).toEqual([]);
  });
});

describe("time and chance", () => {
  it.each([
    "const now = Date.now();",
    'const now = Date["now"]();',
    "const clock = { now: Date.now };",
    "const now = new Date();",
    "const now = Date();",
    "setTimeout(() => {}, 10);",
    "globalThis.setTimeout(() => {}, 10);",
    "const every = setInterval;",
    "const timers = { setImmediate };",
    "const now = performance.now();",
    "const n = Math.random();",
    "const n = process.hrtime.bigint();",
    "const id = crypto.randomUUID();",
    'import { randomUUID } from "node:crypto";',
    'import { setTimeout as sleep } from "node:timers/promises";',
    "const signal = AbortSignal.timeout(10);",
  ])("refuses %s", (text) => {
    expect(check(systemCalls, "src/engine/worker/worker.ts", text)).not.toEqual([]);
  });

  it.each([
    "// Date.now() is banned here\nconst text = 'Math.random()';",
    "const at = new Date(instant).toISOString();",
    "clock.setTimeout(() => {}, 10);",
    "interface Clock { setTimeout(run: () => void): void; now(): number }",
    "const clock = { setTimeout: start };",
    "const now = clock.now();",
    "const n = random.next();",
  ])("accepts %s", (text) => {
    expect(check(systemCalls, "src/engine/worker/worker.ts", text)).toEqual([]);
  });

  it("leaves the system file and tests alone", () => {
    expect(check(systemCalls, "src/engine/runtime/real-system.ts", "Date.now();")).toEqual([]);
    expect(check(systemCalls, "src/engine/worker.test.ts", "Date.now();")).toEqual([]);
    expect(check(systemCalls, "test/e2e/kill.ts", "Date.now();")).toEqual([]);
  });
});

describe("the write path", () => {
  it.each([
    "await store.commit(units, { now });",
    "await this.#parts.store.commit(units, { now });",
    "await this.#store.commit(units, { now });",
    'await parts["store"].commit(units, { now });',
    "await anything.commit([unit], { now });",
    "bus.announce(row, events, at);",
    "this.#parts.bus.announce(row, events, at);",
    'bus.emit({ name: "job.completed", at });',
    'bus.emit({ ...bus.detail(row, "job.started", at) });',
    'bus.emit({ name: isLate ? "job.scheduled" : "job.enqueued", at });',
  ])("refuses %s", (text) => {
    expect(check(writePath, "src/engine/worker/worker.ts", text)).toHaveLength(1);
  });

  it.each([
    "await commitJobs(context, [job]);",
    "await this.#queue.commit({ row, decision, at, by });",
    "await committer.commit(unit);",
    "announce(context, job);",
    'bus.emit({ name: "job.lost", at });',
    "const commit = store.commit;",
  ])("accepts %s", (text) => {
    expect(check(writePath, "src/engine/worker/worker.ts", text)).toEqual([]);
  });

  it("is one file each, and stores and tests are left alone", () => {
    const [commit, emit] = ["store.commit(units, { now });", 'bus.emit({ name: "job.completed" });'];
    expect(check(writePath, "src/engine/commit/commit.ts", commit)).toEqual([]);
    expect(check(writePath, "src/engine/commit/commit.ts", emit)).toHaveLength(1);
    expect(check(writePath, "src/engine/commit/announce.ts", emit)).toEqual([]);
    expect(check(writePath, "src/engine/commit/announce.ts", commit)).toHaveLength(1);
    expect(check(writePath, "src/stores/memory/memory-store.ts", commit)).toEqual([]);
    expect(check(writePath, "test/engine/sweep.test.ts", commit)).toEqual([]);
  });
});

describe("sizes", () => {
  it("refuses a file of 501 lines and accepts one of 500", () => {
    expect(check(sizes, "src/a.ts", lines(501, "f();"))).toHaveLength(1);
    expect(check(sizes, "src/a.ts", lines(500, "f();"))).toEqual([]);
  });

  it("lets a marked table be longer, and only a marked one", () => {
    const data = `export const rows = [\n${lines(600, "  1,")}];\n`;
    expect(check(sizes, "src/a.ts", `// tidy: table\n${data}`)).toEqual([]);
    expect(check(sizes, "src/a.ts", `// A comment first\n// tidy: table\n${data}`)).toHaveLength(1);
  });

  it("refuses logic in a table", () => {
    const text = `// tidy: table\nfunction f() {\n${lines(20)}}\n`;
    expect(check(sizes, "src/a.ts", text)[0]?.says).toContain("a function in a table of 22 lines");
  });

  it.each([
    ["function f() {", "}"],
    ["const f = () => {", "};"],
    ["const o = { f() {", "} };"],
    ["class C { f() {", "} }"],
    ['it("works", async () => {', "});"],
  ])("refuses 71 lines in %s and accepts 70", (open, close) => {
    expect(check(sizes, "src/a.ts", `${open}\n${lines(69)}${close}`)).toHaveLength(1);
    expect(check(sizes, "src/a.ts", `${open}\n${lines(68)}${close}`)).toEqual([]);
  });

  it("measures the tests in a suite, not the suite", () => {
    const text = `describe.each([1])("a", () => {\n${lines(100, '  it("b", () => {});')}});`;
    expect(check(sizes, "test/a.test.ts", text)).toEqual([]);
  });

  it("is not misled by braces in strings and comments", () => {
    expect(check(sizes, "src/a.ts", `const f = () => "{"; // {\n${lines(100, "f();")}`)).toEqual([]);
  });
});

describe("glossary", () => {
  it.each([
    "export class JobManager {}",
    "export function taskOf() {}",
    "export const parseUtils = {};",
    "export interface IStore {}",
    "export class BaseStore {}",
    "export class StoreBase {}",
    "export const lockDuration = 1;",
    "export function nack() {}",
    "export function pingWorker() {}",
    "export type EnqueueTTL = string;",
    "export const etaOf = 1;",
    "export type JobKind = string;",
    "export function pushJobs() {}",
    "export const leaseMs = 1;",
    "export const graceSeconds = 1;",
    "export interface Options { readonly attemptMs: number }",
    "export type Options = { nested: { waitSeconds?: number } };",
    "const rescue = 1;\nexport { rescue };",
    'export { fine as helper } from "./other.ts";',
  ])("refuses %s", (text) => {
    expect(check(glossary, "src/engine/a.ts", text)).toHaveLength(1);
  });

  it.each([
    "export const clock = 1, block = 2, unblocked = 3;",
    "export interface Metadata {}\nexport type Timeline = string;",
    "export type InputOf<S> = S;\nexport interface Instant { readonly epochMilliseconds: number }",
    "export type TimeoutKind = string;",
    "export const databaseUrl = 1, baseUrl = 2;",
    "export const items = 1, terms = 2, ms = 3;",
    "export const TAKE_ADVISORY_LOCK = 'select 1';",
    "const lock = 1;\nfunction task() {}",
    "// export class JobManager {}",
  ])("accepts %s", (text) => {
    expect(check(glossary, "src/engine/a.ts", text)).toEqual([]);
  });

  it("lets the wire speak Open Job Spec", () => {
    expect(check(glossary, "src/ojs/wire-types.ts", "export const enqueueTtl = 1;")).toEqual([]);
  });

  it.each([
    ["claimJobs", ["claim", "jobs"]],
    ["parseURLText", ["parse", "url", "text"]],
    ["JOB_STATES", ["job", "states"]],
    ["uuidV7", ["uuid", "v", "7"]],
  ])("splits %s", (name, words) => {
    expect(wordsOf(name)).toEqual(words);
  });
});

describe("silenced tests", () => {
  it.each(["it.skip('a', f);", "describe.only('a', f);", "test.todo('a');", "it.concurrent.only('a', f);"])(
    "refuses %s",
    (text) => {
      expect(check(silencedTests, "test/a.test.ts", text)).toHaveLength(1);
    },
  );

  it.each(["it('a', f);", "it.skipIf(!hasRedis)('a', f);", "list.skip(3);", "// it.only"])(
    "accepts %s",
    (text) => {
      expect(check(silencedTests, "test/a.test.ts", text)).toEqual([]);
    },
  );
});

describe("limits of tests", () => {
  it.each([
    "it('a', async () => {}, 60_000);",
    "it('a', { timeout: 60_000 }, async () => {});",
    "it.concurrent.each(cases)('a', async () => {}, 120_000);",
    "beforeAll(async () => {}, 120_000);",
    "async () => { await expect.poll(f, { timeout: 10_000 }).toBe(1); };",
    "async () => { await vi.waitFor(f); };",
    "async () => { await vi.waitUntil(f, 20_000); };",
  ])("refuses %s", (text) => {
    expect(check(shortLimits, "test/a.test.ts", text)).toHaveLength(1);
  });

  it.each([
    "it('a', async () => {});",
    "it('a', { timeout: 600_000 }, async () => {});",
    "it.each([1, 2])('a %i', async () => {});",
    "expect.poll(f, { interval: 20 }).toBe(1);",
    "vi.waitUntil(f, { timeout: 60_000 });",
    "new DatabaseSync(path, { timeout: 20_000 });",
  ])("accepts %s", (text) => {
    expect(check(shortLimits, "test/a.test.ts", text)).toEqual([]);
  });
});

describe("holes in the types", () => {
  it.each([
    "const a = b as any;",
    "function f(a: any) {}",
    "type A = Record<string, any>;",
    "// @ts-ignore\nf();",
    "/* @ts-nocheck */",
  ])("refuses %s", (text) => {
    expect(check(typeHoles, "src/a.ts", text)).toHaveLength(1);
  });

  it.each(["const any = 1;", "// as any", "const a = b as unknown;", "// @ts-expect-error\nf(1);"])(
    "accepts %s",
    (text) => {
      expect(check(typeHoles, "src/a.ts", text)).toEqual([]);
    },
  );
});

describe("traces of a registry or machine", () => {
  // Put together here, because this file is checked like every other.
  const host = (...parts: string[]) => parts.join(".");
  const path = (...parts: string[]) => ["", ...parts].join("/");

  it.each([
    host("https://registry", "npmjs", "org/pg"),
    host("npm", "pkg", "github", "com"),
    host("acme", "jfrog", "io"),
    `"resolved": "${"https"}://example.test/a.tgz"`,
    `cd ${path("work")}`,
    `"${path("work", "main")}"`,
    `see ${path("root", ".npmrc")}`,
    `at ${path("home", "ann", "curfew")}`,
  ])("refuses %s", (text) => {
    expect(machineTraces([{ path: "README.md", text: `first\n${text}` }])[0]?.line).toBe(2);
  });

  it.each([
    "https://openjobspec.org/spec",
    "POST /ojs/v1/workers/heartbeat",
    "GET /workers",
    "./work/a.ts",
    "engine.work({})",
    '"resolved": "tools/node"',
    "npm.cmd",
  ])("accepts %s", (text) => {
    expect(machineTraces([{ path: "README.md", text }])).toEqual([]);
  });
});

describe("retired phrases", () => {
  const TEST = "test/a.test.ts";

  it.each([
    ["a comment", "// Whoever comes first.\nf();", 1],
    ["a comment of several lines", "/**\n * It is\n * told of.\n */", 3],
    ["a test name", 'it("runs so many at once", f);', 1],
    ["a name by each", 'it.each([1])("tells of %s", f);', 1],
    ["a describe block", "describe.concurrent(`waits so long`, f);", 1],
    ["an exception", "// All of them but for the last.", 1],
    ["an owner without a name", "// A store of one's own.", 1],
    ["an image", "// Polls are a net below it.", 1],
  ])("refuses %s", (_where, text, line) => {
    const found = retiredPhrases([{ path: TEST, text }]);
    expect(found.map((finding) => finding.line)).toEqual([line]);
  });

  it.each([
    ["code and data", "for (const told of list) f('whoever');"],
    ["other words", "// As long as it runs, so that many hear it."],
  ])("accepts %s", (_what, text) => {
    expect(retiredPhrases([{ path: TEST, text }])).toEqual([]);
  });

  it.each([
    ["a string", "throw new Error('held by whoever came first');", 1],
    ["a template", "log(`many jobs,\n so long`);", 2],
  ])("refuses %s of src", (_where, text, line) => {
    const found = retiredPhrases([{ path: "src/core/a.ts", text }]);
    expect(found.map((finding) => finding.line)).toEqual([line]);
  });

  it("checks src, test files and documents, and nothing else", () => {
    const text = "// Whoever.";
    const checked = [
      "src/core/a.ts",
      "src/engine/a.ts",
      "src/engine/a.test.ts",
      "src/dashboard/a.tsx",
      "test/stage.ts",
      "test/a.test-d.ts",
      "README.md",
      "docs/a.md",
    ];
    const paths = [...checked, "bench/a.ts"];
    const found = paths.filter((path) => retiredPhrases([{ path, text }]).length > 0);
    expect(found).toEqual(checked);
  });
});

describe("file names", () => {
  it.each([
    "src/core/jobState.ts",
    "src/Engine.ts",
    "test/my_test.ts",
    "docs/adr/0001-Node.md",
    "src/Core/a.ts",
  ])("refuses %s", (path) => {
    expect(fileNames([{ path }])).toHaveLength(1);
  });

  it.each([
    "src/core/wall-clock.test.ts",
    "test/types/jobs.test-d.ts",
    "bench/README.md",
    "LICENSE",
    "docs/adr/0001-a.md",
  ])("accepts %s", (path) => {
    expect(fileNames([{ path }])).toEqual([]);
  });

  it("refuses a second file of one name, unless its folder is a set", () => {
    const paths = (...all: string[]) => all.map((path) => ({ path }));
    expect(uniqueNames(paths("src/core/a.ts", "src/engine/a.ts"))[0]?.path).toBe("src/engine/a.ts");
    expect(uniqueNames(paths("src/core/a.ts", "src/stores/sqlite/a.ts", "test/a.ts"))).toEqual([]);
    expect(uniqueNames(paths("src/client/index.ts", "src/server/index.ts"))).toEqual([]);
  });
});

describe("causes", () => {
  it.each([
    'try { read(); } catch { throw new Error("no"); }',
    'try { read(); } catch (error) { throw new Error("no"); }',
    "try { read(); } catch (error) { if (isLate) throw refuse((error as Error).message); }",
    "read().catch((error) => { throw new Error(error.code); });",
    'read().catch(() => { throw new Error("no"); });',
  ])("refuses %s", (text) => {
    expect(check(lostCauses, "src/open.ts", text)).toHaveLength(1);
  });

  it.each([
    "try { read(); } catch (error) { throw error; }",
    'try { read(); } catch (cause) { throw new CurfewError("closed", "no", { cause }); }',
    "try { read(); } catch (error) { throw explained(error, path); }",
    "read().catch((error) => { throw failure(error); });",
    'try { read(); } catch (error) { later(() => { throw new Error("another"); }); }',
    'if (isLate) throw new Error("no");',
  ])("lets %s through", (text) => {
    expect(check(lostCauses, "src/open.ts", text)).toEqual([]);
  });

  it("looks at the product alone", () => {
    const text = 'try { read(); } catch { throw new Error("no"); }';
    expect(check(lostCauses, "test/open.test.ts", text)).toEqual([]);
  });
});
