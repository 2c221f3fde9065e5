import { describe, expect, it } from "vitest";
import { defineJob, type Logger, processor, unchecked } from "../../src/index.ts";
import { silentLogger } from "../../src/ports/log.ts";
import { deaf, openPair, openStage, START } from "./stage.ts";

/** A job without a deadline and without a sign of life that is awaited holds its key for ever if its worker dies. */

const ENDLESS = { attempt: "none", heartbeat: "none" } as const;
const STRICT = { key: "account 7", concurrency: 1, strict: true } as const;
const defined = (timeouts: object, limit: object | undefined = STRICT) =>
  defineJob({ type: "books", payload: unchecked<null>(), timeouts, ...(limit && { limit: limit as never }) });

describe("a definition whose job could hold its key for ever", () => {
  async function warnings(definition: ReturnType<typeof defined>, engine: object = {}) {
    const said: string[] = [];
    const logger: Logger = { ...silentLogger, warn: (_, message) => void said.push(message) };
    const stage = await openStage({ logger, ...engine });
    said.splice(0);
    stage.work([processor(definition, () => {})]);
    return said;
  }

  it("is warned of when a worker starts", async () => {
    const [warning, ...others] = await warnings(defined(ENDLESS));
    expect(warning).toMatch(/nothing ends a job.*limit "account 7".*nothing else of that key.*heartbeat/);
    expect(others).toEqual([]);
    expect(await warnings(defined(ENDLESS, { key: "a", concurrency: 3 }))).toEqual([
      expect.stringContaining("3 of them stop all of that key"),
    ]);
  });

  it.each([
    ["its worker's sign of life is awaited", defined({ attempt: "none" })],
    ["it has an end of its own", defined({ ...ENDLESS, total: "1h" })],
    ["its attempts have one", defined({ heartbeat: "none", attempt: "1m" })],
    ["it holds no place", defined(ENDLESS, { key: "a", rate: { limit: 1, per: "1s" } })],
    ["it has no limit", defineJob({ type: "books", payload: unchecked<null>(), timeouts: ENDLESS })],
  ] as const)("is none where %s", async (_, definition) => {
    expect(await warnings(definition as ReturnType<typeof defined>)).toEqual([]);
  });
});

it("explain says it of a job", async () => {
  const { engine } = await openStage();
  const held = await engine.enqueue(defined(ENDLESS), null);
  const { warnings } = await engine.explain(held.id, defined(ENDLESS));
  expect(warnings.join("\n")).toMatch(/it holds a place of the limit "account 7".*nothing else of that key/);
  const free = await engine.enqueue(defined({ attempt: "1m" }), null);
  expect((await engine.explain(free.id, defined({ attempt: "1m" }))).warnings).toEqual([]);
});

it("advise names the job that holds a key when its worker is gone, and no longer once it is cancelled", async () => {
  const pair = await openPair();
  const definition = defined(ENDLESS);
  const { engine } = pair.first;
  const { id } = await engine.enqueue(definition, null);
  const waits = await engine.enqueue(definition, null);
  pair.second.work([processor(definition, deaf)]);
  await pair.advance(2_000);
  const [before] = await engine.advise();
  expect(before?.holds).toMatchObject([{ key: "account 7", job: id, isWorkerGone: false }]);
  expect(before?.text).not.toContain("account 7");
  pair.crashSecond();
  await pair.advance(120_000, 1_000);
  const [advice] = await engine.advise({ type: "books" });
  expect(advice?.holds).toMatchObject([{ job: id, isWorkerGone: true }]);
  expect(advice?.holds[0]?.since).toBeGreaterThanOrEqual(START);
  expect(advice?.text).toMatch(new RegExp(`Job ${id} holds the key "account 7" since .*: cancel it`));
  expect((await engine.load(waits.id))?.state).toBe("pending");
  expect(await engine.advise({ type: "other" })).toEqual([]);
  await engine.cancel(id);
  for (const { holds } of await engine.advise()) expect(holds).toEqual([]);
  expect((await engine.load(waits.id))?.state).toBe("available");
});
