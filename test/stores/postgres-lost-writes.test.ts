import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { JobId } from "../../src/core/job/job.ts";
import { defineJob, type Engine, openEngine, processor } from "../../src/index.ts";
import { openPostgresStore } from "../../src/open.ts";
import { silentLogger } from "../../src/ports/log.ts";
import type { Store } from "../../src/ports/store.ts";
import { createDatabase } from "../postgres.ts";

const waiting = defineJob({ type: "lost.waiting", timeouts: { total: "1h" } });
const running = defineJob({ type: "lost.running", timeouts: { attempt: "1h", total: "2h" } });

let client: pg.Client;
let store: Store;
let engine: Engine;

beforeAll(async () => {
  const { url } = await createDatabase(inject("postgresUrl"));
  store = await openPostgresStore({ connection: url });
  engine = await openEngine({ store, logger: silentLogger });
  client = new pg.Client({ connectionString: url });
  await client.connect();
});

afterAll(async () => {
  await engine?.close({ drain: "0s" });
  await client?.end();
});

/** What the standby has of a job. */
async function saved(id: JobId): Promise<unknown> {
  const { rows } = await client.query("select to_json(j) as row from curfew.jobs j where id = $1", [id]);
  return rows[0].row;
}

/** A failover that lost what was written since. */
async function failOver(id: JobId, row: unknown): Promise<void> {
  await client.query("delete from curfew.jobs where id = $1", [id]);
  await client.query(
    "insert into curfew.jobs overriding system value select * from json_populate_record(null::curfew.jobs, $1)",
    [JSON.stringify(row)],
  );
}

async function load(id: JobId) {
  const [row] = await store.jobs.load([id]);
  if (!row) throw new Error(`job ${id} is gone`);
  return row;
}

describe("SEMANTICS 9: writes that a failover lost", () => {
  it("a decision on a row that was lost is refused after another operator changed the job", async () => {
    const { id } = await engine.enqueue(waiting, undefined, { delay: "30m" });
    const kept = await saved(id);
    await engine.job(id).extend({ total: "2h" });
    const lost = await load(id);

    await failOver(id, kept);
    await engine.job(id).extend({ total: "3h" });
    const { rev: current, totalAt } = await load(id);
    expect(current).not.toBe(lost.rev);

    const { fence, rev, wakeAt, wake, state, rank, attempt, returns, expiredClaims, ...more } = lost;
    const image = { ...more, wakeAt, wake, state, rank, attempt, returns, expiredClaims };
    const [outcome] = await store.commit([{ job: { id, fence, rev, image } }], { now: await store.clock() });
    expect(outcome).toMatchObject({ ok: false, because: "stale" });
    expect((await load(id)).totalAt).toBe(totalAt);
  });

  it("an extension does not get the revision of a start that was lost", async () => {
    const entered = Promise.withResolvers<AbortSignal>();
    const ended = Promise.withResolvers<void>();
    const claimed = Promise.withResolvers<unknown>();
    const worker = engine.work({
      processors: [
        processor(running, async ({ id, signal }) => {
          claimed.resolve(await saved(id));
          entered.resolve(signal);
          await ended.promise;
        }),
      ],
    });
    const { id } = await engine.enqueue(running);
    await entered.promise;
    const kept = await claimed.promise;
    // The start is written a moment after the handler is entered.
    await expect.poll(async () => (await load(id)).startedAt).not.toBeNull();
    const started = await load(id);

    await failOver(id, kept);
    await engine.job(id).extend({ attempt: "5h" });
    expect((await load(id)).rev).not.toBe(started.rev);
    ended.resolve();
    await expect.poll(async () => (await load(id)).state).toBe("completed");
    await worker.close();
  });
});
