import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import {
  chain,
  defineJob,
  type Engine,
  group,
  openEngine,
  processor,
  type StepNode,
  silentLogger,
  step,
  type Transaction,
  unchecked,
} from "../../src/index.ts";
import { createDatabase } from "../postgres.ts";

/** Members of the wide group; more than is stored in one commit. */
const MEMBERS = Number(process.env.CURFEW_WORKFLOW_MEMBERS ?? 1_500);

const double = defineJob({ type: "wide.double", payload: unchecked<number>(), result: unchecked<number>() });
const sum = defineJob({ type: "wide.sum", result: unchecked<number>() });

interface Opened {
  readonly engine: Engine;
  /** Runs within a transaction of the caller's own, which is rolled back or committed. */
  within(end: "commit" | "rollback", run: (tx: Transaction) => Promise<void>): Promise<void>;
}

async function openSqlite(): Promise<Opened> {
  const folder = await mkdtemp(join(tmpdir(), "curfew-workflow-store-"));
  const file = join(folder, "workflows.db");
  const engine = await openEngine({ store: `sqlite:${file}`, logger: silentLogger });
  const handle = new DatabaseSync(file, { timeout: 20_000 });
  onTestFinished(async () => {
    await engine.close({ drain: "0s" });
    handle.close();
    await rm(folder, { recursive: true, force: true });
  });
  const within: Opened["within"] = async (end, run) => {
    handle.exec("begin immediate");
    await run(handle);
    handle.exec(end);
  };
  return { engine, within };
}

async function openPostgres(): Promise<Opened> {
  const database = await createDatabase(inject("postgresUrl"));
  const engine = await openEngine({ store: database.url, logger: silentLogger });
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  onTestFinished(async () => {
    await engine.close({ drain: "0s" });
    await client.end();
    await database[Symbol.asyncDispose]();
  });
  const within: Opened["within"] = async (end, run) => {
    await client.query("begin");
    await run(client);
    await client.query(end);
  };
  return { engine, within };
}

describe.each([
  ["SQLite", openSqlite],
  ["PostgreSQL", openPostgres],
] as const)("workflows on %s", (name, open) => {
  it("are there if and only if the caller's transaction commits", async () => {
    const { engine, within } = await open();
    const node = chain([group([step(double, 1), step(double, 2)]), step(sum)]);
    await within("rollback", async (tx) => void (await engine.workflows.start(node, { tx })));
    expect(await engine.workflows.list()).toEqual([]);
    expect(await engine.queues.depth()).toMatchObject({ available: 0, pending: 0 });
    await within("commit", async (tx) => void (await engine.workflows.start(node, { tx })));
    const [{ id } = { id: "" }] = await engine.workflows.list();
    engine.work({ processors: processors() });
    expect(await engine.workflows.get(id).result({ within: "1m" })).toBe(6);
  });

  it(`a workflow of ${MEMBERS} parallel members is stored, run and summed up`, {
    timeout: 300_000,
  }, async () => {
    const { engine } = await open();
    const members = Array.from({ length: MEMBERS }, (_, nth) => step(double, nth));
    engine.work({ queues: { default: { concurrency: 100 } }, processors: processors() });
    const startedAt = performance.now();
    const workflow = await engine.workflows.start(
      chain([group(members as unknown as [StepNode<number>]), step(sum)]),
    );
    const storedAt = performance.now();
    expect(await workflow.result({ within: "4m" })).toBe(MEMBERS * (MEMBERS - 1));
    console.log(
      `${MEMBERS} members on ${name}: stored in ${Math.round(storedAt - startedAt)} ms, done after ${Math.round(performance.now() - startedAt)} ms`,
    );
    expect(await workflow.view()).toMatchObject({
      state: "completed",
      progress: { total: MEMBERS + 1, completed: MEMBERS + 1 },
    });
  });
});

function processors() {
  return [
    processor(double, ({ payload }) => 2 * payload),
    processor(sum, ({ parentResults }) =>
      (parentResults as number[]).reduce((total, value) => total + value, 0),
    ),
  ];
}
