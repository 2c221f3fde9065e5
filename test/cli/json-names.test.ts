import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defineJob, openEngine } from "../../src/index.ts";
import { curfew, openStage, type Stage } from "./stage.ts";

let stage: Stage;
let held: string;
beforeAll(async () => {
  stage = await openStage();
  await using engine = await openEngine({ store: stage.store });
  const limited = defineJob({ type: "limited", queue: "slow", limit: { key: "bank", concurrency: 1 } });
  await engine.enqueue(limited);
  held = (await engine.enqueue(limited)).id;
});
afterAll(() => stage.close());

/** What users wrote, and what a store keeps as it is. */
const FREE = ["args", "meta", "result", "data", "details", "labels", "payload", "options", "policy"];

/** Names that are not in snake_case, and numbers that look like instants, each with its path. */
function breaches(value: unknown, path: string, free: readonly string[]): string[] {
  if (Array.isArray(value)) return value.flatMap((each, index) => breaches(each, `${path}[${index}]`, free));
  if (typeof value === "number") return value > 1e12 && value < 1e13 ? [`${path} is ${value}`] : [];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) =>
    free.includes(key)
      ? []
      : [
          ...(/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/.test(key) ? [] : [`${path}.${key}`]),
          ...breaches(each, `${path}.${key}`, free),
        ],
  );
}

const COMMANDS: readonly (readonly [string, (stage: Stage) => readonly string[]])[] = [
  ["ls", () => ["ls"]],
  ["show", ({ jobs }) => ["show", jobs.dead]],
  ["why", ({ jobs }) => ["why", jobs.dead]],
  ["explain", ({ jobs }) => ["explain", jobs.dead]],
  ["enqueue", () => ["enqueue", "greet"]],
  ["cancel --dry-run", () => ["cancel", "--all", "--dry-run"]],
  ["extend", ({ jobs }) => ["extend", jobs.waiting, "--total", "2h"]],
  ["logs", ({ jobs }) => ["logs", jobs.done]],
  ["tail", () => ["tail"]],
  ["wait", ({ jobs }) => ["wait", jobs.done]],
  ["queues ls", () => ["queues", "ls"]],
  ["queues limit", () => ["queues", "limit", "reports", "--max-depth", "1000"]],
  ["queues purge", () => ["queues", "purge", "reports", "--dry-run"]],
  ["dead ls", () => ["dead", "ls"]],
  ["cron ls", () => ["cron", "ls"]],
  ["cron show", () => ["cron", "show", "nightly"]],
  ["cron next", () => ["cron", "next", "nightly"]],
  ["workflows ls", () => ["workflows", "ls"]],
  ["workflows show", ({ workflow }) => ["workflows", "show", workflow]],
  ["sagas ls", () => ["sagas", "ls"]],
  ["timeouts ls", () => ["timeouts", "ls"]],
  ["workers ls", () => ["workers", "ls"]],
  ["top", () => ["top"]],
  ["stats", () => ["stats"]],
  ["advise", () => ["advise"]],
  ["limits ls", () => ["limits", "ls"]],
  ["audit", () => ["audit"]],
  ["doctor", () => ["doctor"]],
  ["maintenance", () => ["maintenance", "status"]],
  ["export", () => ["export", "--partial"]],
];

describe("the names in --json", () => {
  it.each(COMMANDS)("of %s are in snake_case, and instants are texts", async (name, words) => {
    const { stdout } = await curfew([...words(stage), "--url", stage.url, "--json"]);
    const free = name === "export" ? [...FREE, "errors"] : FREE;
    const documents = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown);
    expect(documents.flatMap((document) => breaches(document, "", free))).toEqual([]);
  });

  it("of keys new are those of keys ls", async () => {
    const file = join(stage.folder, "keys.json");
    const flags = ["--name", "mia", "--role", "admin", "--not-after", "2099-01-01T00:00:00Z"];
    const made = await curfew(["keys", "new", ...flags, "--file", file, "--json"]);
    expect(JSON.parse(made.stdout)).toMatchObject({ name: "mia", not_after: "2099-01-01T00:00:00Z" });
    const { stdout } = await curfew(["keys", "ls", "--file", file, "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({
      items: [{ name: "mia", not_after: "2099-01-01T00:00:00.000Z" }],
    });
  });
});

describe("a job that only its limit holds", () => {
  it("is available and has held_by in every answer", async () => {
    const ask = async (...words: string[]) => (await curfew([...words, "--url", stage.url, "--json"])).stdout;
    const shown = { state: "available", held_by: "bank" };
    expect(JSON.parse(await ask("show", held))).toMatchObject(shown);
    expect(JSON.parse(await ask("why", held))).toMatchObject(shown);
    const { items } = JSON.parse(await ask("ls", "--state", "held")) as { items: object[] };
    expect(items).toMatchObject([{ id: held, ...shown }]);
    const lines = (await ask("export", "--partial")).trim().split("\n");
    const line = lines.map((text) => JSON.parse(text) as { id?: string }).find(({ id }) => id === held);
    expect(line).toMatchObject({ state: "available", limit_key: "bank" });
  });

  it("is imported from a file of version 1, too", async () => {
    const { stdout } = await curfew(["export", "--partial", "--queue", "slow", "--url", stage.url]);
    const camel = (text: string) =>
      text.replace(/"([a-z]+(?:_[a-z]+)+)":/g, (_all, name: string) => {
        return `"${name.replace(/_([a-z])/g, (_under, letter: string) => letter.toUpperCase())}":`;
      });
    const old = stdout
      .split("\n")
      .map((line) =>
        camel(line.includes(held) ? line.replace('"state":"available"', '"state":"pending"') : line),
      )
      .join("\n")
      .replace('"version":2', '"version":1');
    expect(old).toContain('"createdAt"');
    const file = join(stage.folder, "old.jsonl");
    writeFileSync(file, old);
    const store = `sqlite:${join(stage.folder, "new.db")}`;
    await curfew(["migrate", "--store", store]);
    const { code, stdout: said } = await curfew(["import", file, "--store", store, "--json"]);
    expect({ code, ...JSON.parse(said) }).toMatchObject({ code: 0, created: 2, errors: [] });
    const shown = await curfew(["show", held, "--store", store, "--json"]);
    expect(JSON.parse(shown.stdout)).toMatchObject({ id: held, state: "available" });
  });
});
