import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import { createIdSource } from "../../src/core/ids.ts";
import { prepareJob, stamp } from "../../src/core/job/enqueue/envelope.ts";
import type { JobRow } from "../../src/core/job/job.ts";
import { defineJob } from "../../src/core/job/job-definition.ts";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import type { JobWrite } from "../../src/ports/store.ts";
import { formOf } from "../../src/stores/postgres/job-write-statements.ts";
import { openPostgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { createDatabase, type TestPostgres } from "../postgres.ts";

const now = 1_800_000_000_000;
const nextId = createIdSource(() => now, realSystem.fill);
const definition = defineJob({ type: "test.job" });

let database: TestPostgres;

beforeAll(async () => {
  database = await createDatabase(inject("postgresUrl"));
});

afterAll(async () => {
  await database[Symbol.asyncDispose]();
});

/** How a claimed job ends. `nth` is in everything that may vary between jobs. */
function finish(row: JobRow, nth: number, varies: boolean): JobWrite {
  const mine = varies ? nth : 0;
  return {
    id: row.id,
    fence: row.fence,
    image: {
      ...({ state: varies && nth % 2 ? "discarded" : "completed", wake: "decide", wakeAt: null } as const),
      ...{ rank: row.rank + mine, attempt: 1 + mine, returns: mine, expiredClaims: mine },
      ...{ waitAt: null, totalAt: now + mine, startedAt: now + mine, softAt: mine === 0 ? null : now },
      ...{ hardAt: null, stallAt: null, heartbeat: 1_000 + mine, finishedAt: now + mine },
      ...{ pruneAt: now + 1_000 + mine, deadLetter: varies && nth % 2 === 1 },
    },
    documents: {
      result: varies ? `{"n":${nth}}` : '"same"',
      ...(varies && nth % 2 && { progress: '{"percent":5}' }),
    },
  };
}

async function finishAll(varies: boolean): Promise<void> {
  const store = await openPostgresStore({
    connection: database.url,
    schema: `forms_${varies}_${nextId().slice(-6)}`,
    system: realSystem,
  });
  onTestFinished(() => store.close());
  const template = prepareJob(definition, undefined, { now, nextId, hash: (text) => text });
  await store.jobs.enqueue(
    Array.from({ length: 6 }, () => stamp(template, "null", nextId)),
    { now },
  );
  const request = { queue: "default", limit: 10, now, lease: 10_000, salt: 1, worker: "w", from: 0 };
  const rows = await store.jobs.claim(request);
  expect(rows).toHaveLength(6);
  const writes = rows.map((row, nth) => finish(row, nth, varies));
  const outcomes = await store.commit(
    writes.map((job) => ({ job })),
    { now },
  );
  expect(outcomes).toEqual(writes.map(() => ({ ok: true })));
  const loaded = await store.jobs.load(rows.map(({ id }) => id));
  expect(loaded).toEqual(
    rows.map((row, nth) => {
      const { image, documents } = writes[nth] as JobWrite;
      return { ...row, ...image, ...documents, rev: row.rev + 1 };
    }),
  );
}

describe("a set of writes to jobs", () => {
  it("writes what its jobs agree on, and what they differ in", async () => {
    await finishAll(false);
    await finishAll(true);
  });

  it("does so too after more forms were used than the server should keep", async () => {
    const used = Array.from({ length: 40 }, (_, nth) => formOf(nth << 3));
    expect(used.at(-1)).not.toBe(39 << 3);
    await finishAll(false);
    await finishAll(true);
  });
});
