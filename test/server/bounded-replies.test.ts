import { expect, it, vi } from "vitest";
import { openStage } from "./stage.ts";

const LARGE = "x".repeat(900_000);

it("a page of large jobs ends early, and its cursor continues until all are read", async () => {
  await using stage = await openStage();
  for (let count = 0; count < 12; count++) await stage.enqueue({}, { args: [LARGE] });
  const sorted = "/admin/jobs?sort=priority&per_page=200";
  for (const path of ["/jobs?limit=200", "/admin/jobs?per_page=200", sorted]) {
    const seen = new Set<string>();
    let cursor: string | null = null;
    let pages = 0;
    do {
      const { body } = await stage.get(`${path}${cursor === null ? "" : `&cursor=${cursor}`}`);
      const jobs = body.jobs ?? body.items;
      expect(JSON.stringify(body).length).toBeLessThan(6_000_000);
      for (const { id } of jobs) seen.add(id);
      cursor = body.pagination.next_cursor;
      pages += 1;
    } while (cursor !== null);
    expect([seen.size, pages > 2]).toEqual([12, true]);
  }
});

it("an export of large jobs ends its pages early, and its cursor continues until all are read", async () => {
  await using stage = await openStage();
  for (let count = 0; count < 12; count++) await stage.enqueue({}, { args: [LARGE] });
  const seen = new Set<string>();
  let cursor: string | null = null;
  do {
    const { body } = await stage.get(
      `/admin/export?per_page=200${cursor === null ? "" : `&cursor=${cursor}`}`,
    );
    expect(JSON.stringify(body).length).toBeLessThan(6_000_000);
    for (const { id } of body.lines) seen.add(id);
    cursor = body.next_cursor;
  } while (cursor !== null);
  expect(seen.size).toBe(12);
});

it("existing jobs of a batch with unique keys come without documents once they are too large together", async () => {
  await using stage = await openStage();
  const job = (n: number, args: unknown[]) => ({
    type: "a.b",
    args,
    meta: { n },
    unique: { keys: ["type", "meta"], meta_keys: ["n"], on_conflict: "ignore" },
  });
  for (let n = 0; n < 12; n++) expect((await stage.post("/jobs", job(n, [LARGE]))).status).toBe(201);
  const jobs = Array.from({ length: 12 }, (_, n) => job(n, []));
  const { body } = await stage.post("/jobs/batch", { jobs });
  expect(JSON.stringify(body).length).toBeLessThan(7_000_000);
  expect(body.jobs).toHaveLength(12);
  const brief = body.jobs.filter(({ is_brief }: { is_brief?: boolean }) => is_brief);
  expect(brief.length).toBeGreaterThan(5);
  expect(
    brief.every(({ args, state }: { args: unknown[]; state: string }) => args.length === 0 && state),
  ).toBe(true);
  expect(body.jobs[0].args).toEqual([LARGE]);
});

it("requests that name many jobs load no documents of them, except the first rows of reports", async () => {
  await using stage = await openStage();
  for (let count = 0; count < 12; count++) await stage.enqueue({}, { args: [LARGE] });
  const { jobs } = stage.engine.store;
  const ids = (await stage.engine.store.inspect.page({ filter: {}, after: null }, 12)).jobs.map(
    ({ id }) => id,
  );
  const load = jobs.load.bind(jobs);
  let [calls, whole] = [0, 0];
  vi.spyOn(jobs, "load").mockImplementation(async (named, options) => {
    const rows = await load(named, options);
    calls += 1;
    whole += rows.filter((row) => row?.payload.includes(LARGE)).length;
    return rows;
  });
  const { lines } = (await stage.get("/admin/export?per_page=200")).body;
  const named = ids.map((id) => ({ ...lines[0], id, payload: "null" }));
  const { results } = (await stage.post("/admin/import", { lines: named, dry_run: true })).body;
  expect(results.map(({ status }: { status: string }) => status)).toEqual(ids.map(() => "exists"));
  await stage.post("/workers/heartbeat", { worker_id: "w-1", active_jobs: ids });
  await stage.post("/jobs/batch", { jobs: ids.map((id) => ({ id, type: "a.b", args: [] })) });
  await stage.post("/jobs/batch", { jobs: ids.map((id) => ({ type: "a.b", args: [], parent_id: id })) });
  expect([calls >= 3, whole]).toEqual([true, 0]);
  await stage.post("/workers/ack/batch", { jobs: ids.map((id) => ({ job_id: id, fence: 1 })) });
  expect(whole).toBeLessThanOrEqual(5);
});

it("a batch of 1,000 unique jobs that exist loads them by one call", async () => {
  await using stage = await openStage();
  const unique = { keys: ["type", "args"], on_conflict: "ignore" };
  const jobs = Array.from({ length: 1_000 }, (_, n) => ({ type: "a.b", args: [n], unique }));
  expect((await stage.post("/jobs/batch", { jobs })).status).toBe(201);
  const load = vi.spyOn(stage.engine.store.jobs, "load");
  const { body } = await stage.post("/jobs/batch", { jobs });
  expect([body.jobs.length, load.mock.calls.length]).toEqual([1_000, 1]);
});

it("a sorted list reads brief rows until it knows which jobs are on the page", async () => {
  await using stage = await openStage();
  for (let count = 0; count < 12; count++) await stage.enqueue({}, { args: [LARGE] });
  const { inspect } = stage.engine.store;
  const page = inspect.page.bind(inspect);
  const rows: string[] = [];
  vi.spyOn(inspect, "page").mockImplementation(async (scan, limit) => {
    const found = await page(scan, limit);
    for (const { payload } of found.jobs) rows.push(payload);
    return found;
  });
  const { body } = await stage.get("/admin/jobs?sort=priority&per_page=2");
  expect(body.items.map(({ args }: { args: string[] }) => args[0])).toEqual([LARGE, LARGE]);
  expect(rows).toEqual(Array(12).fill("null"));
});

it("a fetch hands out at most 16 MB, and the rest stays available", async () => {
  await using stage = await openStage();
  for (let count = 0; count < 25; count++) await stage.enqueue({}, { args: [LARGE] });
  const { body } = await stage.post("/workers/fetch", { queues: ["default"], count: 100 });
  expect(body.jobs.length).toBeGreaterThan(10);
  expect(body.jobs.length).toBeLessThan(20);
  const { body: rest } = await stage.post("/workers/fetch", { queues: ["default"], count: 100 });
  expect(body.jobs.length + rest.jobs.length).toBe(25);
  expect(rest.jobs.every(({ attempt }: { attempt: number }) => attempt === 1)).toBe(true);
});

it.each([
  ["meta", { meta: { text: "x".repeat(64_000) } }, 400, /^meta: .*64000 characters/],
  ["unknown fields", { notes: "x".repeat(64_000) }, 413, /^unknown fields: .*64000/],
])("%s of a job have a limit", async (_name, fields, status, message) => {
  await using stage = await openStage();
  const reply = await stage.post("/jobs", { type: "a.b", args: [], ...fields });
  expect([reply.status, reply.body.error.message]).toEqual([status, expect.stringMatching(message)]);
});

it("labels of a worker have a limit, and a worker with very many job types counts as one that takes all", async () => {
  await using stage = await openStage();
  const beat = (more: object) => stage.post("/workers/heartbeat", { worker_id: "w", ...more });
  expect((await beat({ labels: { text: "x".repeat(2_000) } })).status).toBe(400);
  const job_types = Array.from({ length: 200 }, (_, index) => `type.${"x".repeat(200)}${index}`);
  expect((await beat({ job_types })).status).toBe(200);
  expect((await stage.get("/admin/workers/w")).body).not.toHaveProperty("job_types");
});

it("log lines of an attempt are limited to 1,000 over HTTP too, and the last line says so", async () => {
  await using stage = await openStage();
  await stage.enqueue();
  const { id, fence } = await stage.fetch();
  const lines = Array.from({ length: 600 }, (_, index) => ({ message: `line ${index}` }));
  for (let count = 0; count < 3; count++)
    expect((await stage.post(`/jobs/${id}/logs`, { lines, fence })).status).toBe(200);
  const { body } = await stage.get(`/jobs/${id}/logs`);
  expect(body.lines).toHaveLength(1_000);
  expect(body.lines[0].message).toBe("line 0");
  expect(body.lines[999].message).toMatch(/log of this attempt is full/);
});

it("log lines of an attempt are limited to 1 MB, and a reply has at most 4 MB of the lines of all attempts", async () => {
  await using stage = await openStage();
  const retry = { max_attempts: 20, backoff_strategy: "constant", initial_interval_ms: 1, jitter: false };
  const { id } = await stage.enqueue({ retry });
  const lines = Array.from({ length: 40 }, (_, n) => ({
    message: `${n}`,
    fields: { text: "x".repeat(15_000) },
  }));
  for (let attempt = 1; attempt <= 6; attempt++) {
    const { fence } = await stage.fetch();
    for (let count = 0; count < 2; count++)
      expect((await stage.post(`/jobs/${id}/logs`, { lines, fence })).status).toBe(200);
    if (attempt === 1) {
      const { body } = await stage.get(`/jobs/${id}/logs`);
      expect([body.lines.length, body.has_older]).toEqual([67, false]);
      expect(body.lines.at(-1).message).toMatch(/log of this attempt is full/);
    }
    await stage.post("/workers/nack", { job_id: id, fence, error: { message: "no" } });
    await stage.advance("1s");
  }
  const { body } = await stage.get(`/jobs/${id}/logs`);
  expect([JSON.stringify(body).length < 4_100_000, body.has_older]).toEqual([true, true]);
});

it("details of an error above 64,000 characters are left out, and the report counts", async () => {
  await using stage = await openStage();
  await stage.enqueue();
  const { id, fence } = await stage.fetch();
  const error = { message: "no", details: { text: "x".repeat(64_000) } };
  expect((await stage.post("/workers/nack", { job_id: id, fence, error })).status).toBe(200);
  expect((await stage.job(id)).errors[0].details).toEqual({ omitted: "more than 64000 characters" });
});

it("readers that catch up take turns: a page of one is charged before the next is read", async () => {
  await using stage = await openStage();
  for (let count = 0; count < 3; count++)
    await stage.post("/jobs/batch", {
      jobs: Array.from({ length: 1_000 }, () => ({ type: "a.b", args: [] })),
    });
  const { journal } = stage.engine;
  const reads: number[] = [];
  const read = journal.read.bind(journal);
  journal.read = (options) => {
    reads.push(stage.engine.now());
    return read(options);
  };
  const first = (await read({ limit: 1 })).cursor as string;
  reads.length = 0;
  const streams = await Promise.all([1, 2].map(() => follow(stage, first)));
  await stage.advance("5s");
  expect(reads.length).toBeGreaterThan(8);
  for (const [index, at] of reads.slice(1).entries())
    expect(at - (reads[index] as number)).toBeGreaterThanOrEqual(50);
  for (const stream of streams) await stream.cancel();
});

async function follow(stage: Awaited<ReturnType<typeof openStage>>, after: string): Promise<ReadableStream> {
  const url = `http://127.0.0.1/ojs/v1/events/stream?after=${encodeURIComponent(after)}`;
  const response = await stage.server.fetch(new Request(url));
  return response.body as ReadableStream;
}
