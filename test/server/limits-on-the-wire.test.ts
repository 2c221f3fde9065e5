import { describe, expect, it } from "vitest";
import { fits } from "./fits.ts";
import { openStage } from "./stage.ts";

/** Bounded queues, settings of queues and limits on the wire. */

const full = (bound: number) => ({
  "x-ojs-queue-bound": String(bound),
  "x-ojs-queue-depth": String(bound),
  "retry-after": "1",
});

describe("a bounded queue", () => {
  it("refuses one job too many with 429, its depth and its bound", async () => {
    await using stage = await openStage();
    const put = await stage.call("PUT", "/admin/queues/q/config", { backpressure: { max_depth: 2 } });
    fits("PUT", "/admin/queues/:queue/config", put);
    expect(put.body.configuration.backpressure).toMatchObject({
      max_depth: 2,
      strategy: "reject",
      warning_threshold: 1,
    });
    await stage.enqueue({ queue: "q" });
    await stage.enqueue({ queue: "q" });
    const { status, body, headers } = await stage.post("/jobs", { type: "a", args: [], queue: "q" });
    expect([status, body.error.code, body.error.retryable]).toEqual([429, "QUEUE_FULL", true]);
    expect(Object.fromEntries(headers)).toMatchObject(full(2));
    expect(body.error.details).toMatchObject({ queue: "q", depth: 2, bound: 2 });
    await stage.fetch({ queues: ["q"] });
    await stage.enqueue({ queue: "q" });
    const shown = await stage.get("/admin/queues/q/config");
    fits("GET", "/admin/queues/:queue/config", shown);
    expect(shown.body.config.backpressure).toMatchObject({ current_depth: 2, state: "critical" });
  });

  it("takes a batch as a whole or not at all", async () => {
    await using stage = await openStage();
    await stage.call("PUT", "/admin/queues/q/config", { backpressure: { max_depth: 3 } });
    await stage.enqueue({ queue: "q" });
    const job = { type: "a", args: [], options: { queue: "q" } };
    const refused = await stage.post("/jobs/batch", { jobs: [job, job, job] });
    expect([refused.status, refused.body.error.code]).toEqual([429, "QUEUE_FULL"]);
    expect((await stage.get("/queues/q/stats")).body.queue.available).toBe(1);
    const later = { ...job, options: { queue: "q", delay_until: "+PT1H" } };
    expect((await stage.post("/jobs/batch", { jobs: [job, job, later] })).status).toBe(429);
    expect((await stage.post("/jobs/batch", { jobs: [job, later] })).status).toBe(201);
  });

  it("warns in replies when it is nearly full, and no longer when there is room", async () => {
    await using stage = await openStage();
    await stage.call("PUT", "/admin/queues/q/config", {
      backpressure: { max_depth: 4, warning_threshold: 0.5 },
    });
    const pressure = async () =>
      (await stage.post("/jobs", { type: "a", args: [], queue: "q" })).headers.get("x-ojs-queue-pressure");
    expect([await pressure(), await pressure(), await pressure()]).toEqual([null, "0.50", "0.75"]);
    for (let nth = 0; nth < 3; nth++) await stage.fetch({ queues: ["q"] });
    expect(await pressure()).toBeNull();
  });

  it("may drop the oldest instead", async () => {
    await using stage = await openStage();
    await stage.call("PUT", "/admin/queues/q/config", {
      backpressure: { max_depth: 1, strategy: "drop_oldest" },
    });
    const first = await stage.enqueue({ queue: "q" });
    const second = await stage.enqueue({ queue: "q" });
    expect((await stage.job(first.id)).state).toBe("discarded");
    expect((await stage.job(second.id)).state).toBe("available");
  });

  it.each([
    [{ backpressure: { max_depth: 5, strategy: "block" } }, "backpressure.strategy"],
    [{ backpressure: { max_depth: 5, strategy: "hope" } }, "backpressure.strategy"],
    [{ backpressure: { max_size_bytes: 5 } }, "backpressure.max_size_bytes"],
    [{ backpressure: { max_depth: 5, warning_threshold: 2 } }, "backpressure.warning_threshold"],
    [{ rate_limit: { period: "PT1H" } }, "rate_limit"],
    [{ rate_limit: { key: "k", limit: 5 } }, "rate_limit.key"],
    [{ rate_limit: { concurrency: 5 } }, "rate_limit.concurrency"],
    [{ allowed_job_types: ["mail.*"] }, "allowed_job_types"],
    [{ producers: ["web"] }, "producers"],
    [{ dead_letter_queue: "dead" }, "dead_letter_queue"],
    [{ max_size_bytes: 1_000 }, "max_size_bytes"],
    [{ overflow_policy: "block", max_size: 5 }, "backpressure.strategy"],
    [{ concurrency: 0 }, "concurrency"],
    [{ timeouts: { timeout: -1 } }, "timeouts.timeout"],
  ])("refuses %j and names the field", async (config, field) => {
    await using stage = await openStage();
    const { status, body } = await stage.call("PUT", "/admin/queues/q/config", config);
    expect([status, body.error.message.startsWith(`${field}:`)]).toEqual([400, true]);
  });
});

describe("settings of a queue", () => {
  it("are changed one by one, taken back with null, and hold for its jobs", async () => {
    await using stage = await openStage();
    const put = (body: object) => stage.call("PUT", "/admin/queues/q/config", body);
    await put({ concurrency: 1, timeouts: { timeout: 30, grace_period: 0, total_timeout_ms: "none" } });
    const retry = { max_attempts: 7, backoff_strategy: "linear", initial_interval_ms: 2_000, jitter: false };
    await put({ retry, retention: { completed: "P7D", dead_letter: "until_removed" } });
    const { body } = await put({ backpressure: { max_depth: 10, warning_threshold: 0.5 } });
    expect(body.configuration).toMatchObject({
      concurrency: 1,
      timeouts: { timeout_ms: 30_000, grace_period_ms: 0, total_timeout_ms: "none" },
      retry,
      retention: { completed: "PT604800S", dead_letter: "until_removed" },
      backpressure: { max_depth: 10, warning_threshold: 0.5 },
    });
    await stage.enqueue({ queue: "q" });
    await stage.enqueue({ queue: "q" });
    const fetched = await stage.fetch({ queues: ["q"], count: 2 });
    expect(fetched).toMatchObject({ timeout_ms: 30_000, max_attempts: 7, grace_period_ms: 0 });
    expect(await stage.fetch({ queues: ["q"] })).toBeUndefined();
    const less = await put({ concurrency: null, backpressure: null, timeouts: null });
    expect(Object.keys(less.body.configuration).sort()).toEqual(["retention", "retry"]);
    expect(await stage.fetch({ queues: ["q"] })).toBeDefined();
    const audit = (await stage.get("/admin/audit?action=queue.configure")).body.items;
    expect(audit).toHaveLength(4);
  });

  it("have a rate, which holds for jobs without a limit of their own and can be changed and taken back", async () => {
    await using stage = await openStage();
    const put = (body: object) => stage.call("PUT", "/admin/queues/q/config", body);
    const startsWithin = async (seconds: number) => {
      let starts = 0;
      for (let nth = 0; nth < seconds * 2; nth++) {
        if (await stage.fetch({ queues: ["q"] })) starts += 1;
        await stage.advance("500ms");
      }
      return starts;
    };
    const { body } = await put({ rate_limit: { limit: 1, period: "PT2S" } });
    expect(body.configuration).toEqual({ rate_limit: { limit: 1, period: "PT2S" } });
    for (let nth = 0; nth < 40; nth++) await stage.enqueue({ queue: "q" });
    expect(await startsWithin(6)).toBe(3);
    const own = await stage.enqueue({ queue: "q", priority: 9, rate_limit: { key: "own", concurrency: 5 } });
    expect((await stage.fetch({ queues: ["q"] })).id).toBe(own.id);
    // A faster rate holds for the jobs that wait, too.
    await put({ rate_limit: { limit: 2, period: "PT1S" } });
    await stage.advance("4s");
    expect(await startsWithin(4)).toBe(8);
    const without = await put({ rate_limit: null });
    expect(without.body.configuration).toEqual({});
    await stage.advance("4s");
    // Those that wait have the rate of their enqueue again, and new ones have none.
    expect(await startsWithin(4)).toBe(2);
    await stage.enqueue({ queue: "q", priority: 10 });
    expect(await stage.fetch({ queues: ["q"] })).toBeDefined();
    const { items } = (await stage.get("/rate-limits")).body;
    expect(items).toMatchObject([{ key: "own" }, { key: "queue:q", limit: 1, period: "PT2S" }]);
  });

  it("are taken in the spelling of queue-config, around `config` and with its names", async () => {
    await using stage = await openStage();
    const config = {
      max_size: 2,
      overflow_policy: "drop_oldest",
      default_timeout: 30,
      default_retry: { max_attempts: 7 },
      dead_letter_ttl: "P30D",
      rate_limit: { limit: 5, period: "PT1S" },
      retention: { completed: "P7D" },
    };
    const made = await stage.post("/queues", { name: "pay", config });
    fits("POST", "/queues", made);
    expect([made.status, made.body.warnings]).toEqual([201, undefined]);
    expect((await stage.get("/admin/queues/pay/config")).body.configuration).toMatchObject({
      backpressure: { max_depth: 2, strategy: "drop_oldest" },
      timeouts: { timeout_ms: 30_000 },
      retry: { max_attempts: 7 },
      rate_limit: { limit: 5, period: "PT1S" },
      retention: { completed: "PT604800S", dead_letter: "PT2592000S" },
    });
  });

  it("are changed in the spelling of queue-config, and a setting that is sent twice must be the same", async () => {
    await using stage = await openStage();
    const path = "/admin/queues/pay/config";
    const changed = await stage.call("PUT", path, { config: { max_size: 2, default_timout: 9 } });
    fits("PUT", "/admin/queues/:queue/config", changed);
    expect(changed.body.configuration).toMatchObject({ backpressure: { max_depth: 2 } });
    expect(changed.body.warnings.map(({ field }: { field: string }) => field)).toEqual([
      "config.default_timout",
    ]);
    const twice = await stage.call("PUT", path, { max_size: 3, config: { max_size: 4 } });
    expect([twice.status, twice.body.error?.details]).toEqual([400, { field: "config.max_size" }]);
    expect((await stage.get(path)).body.configuration).toMatchObject({ backpressure: { max_depth: 2 } });
  });

  it("waiting and ended jobs of a queue are purged after confirmation", async () => {
    await using stage = await openStage();
    const done = await stage.enqueue({ queue: "q" });
    const { fence } = await stage.fetch({ queues: ["q"] });
    await stage.post("/workers/ack", { job_id: done.id, fence });
    const waiting = [await stage.enqueue({ queue: "q" }), await stage.enqueue({ queue: "q", pending: true })];
    const other = await stage.enqueue({ queue: "other" });
    const bare = await stage.call("DELETE", "/admin/queues/q/jobs", { states: ["available"] });
    expect([bare.status, bare.body.error.message.slice(0, 8)]).toEqual([400, "confirm:"]);
    const states = ["available", "completed"];
    const purged = await stage.call("DELETE", "/admin/queues/q/jobs", { states, confirm: true });
    fits("DELETE", "/admin/queues/:queue/jobs", purged);
    expect(purged.body).toMatchObject({ purged_count: 2, is_complete: true, states });
    const rest = await stage.post("/queues/q/purge");
    fits("POST", "/queues/:queue/purge", rest);
    expect(rest.body.purged_count).toBe(1);
    for (const { id } of [done, ...waiting]) expect((await stage.get(`/jobs/${id}`)).status).toBe(404);
    expect((await stage.job(other.id)).state).toBe("available");
    const running = { states: ["active"], confirm: true };
    expect((await stage.call("DELETE", "/admin/queues/q/jobs", running)).status).toBe(400);
    const aged = { states: ["available"], older_than: "2020-01-01T00:00:00Z", confirm: true };
    expect((await stage.call("DELETE", "/admin/queues/q/jobs", aged)).status).toBe(400);
    const { items } = (await stage.get("/admin/audit")).body;
    expect(items.map(({ action }: { action: string }) => action)).toEqual([
      "queue.purge",
      "bulk.delete",
      "queue.purge",
    ]);
  });
});

describe("limits", () => {
  it("limits hold per key over all queues; a job that waits for its limit is shown as available", async () => {
    await using stage = await openStage();
    const rate_limit = { key: "api", concurrency: 1 };
    const first = await stage.enqueue({ queue: "a", rate_limit });
    const second = await stage.enqueue({ queue: "b", rate_limit });
    expect([first.state, second.state]).toEqual(["available", "available"]);
    expect((await stage.get(`/admin/jobs/${second.id}`)).body.state).toBe("available");
    const got = await stage.fetch({ queues: ["a", "b"], count: 2 });
    expect(await stage.fetch({ queues: ["a", "b"] })).toBeUndefined();
    const shown = await stage.get("/rate-limits/api");
    fits("GET", "/rate-limits/:key", shown);
    expect(shown.body).toMatchObject({ key: "api", concurrency: 1, active: 1, waiting: 1, available: 0 });
    await stage.post("/workers/ack", { job_id: got.id, fence: got.fence });
    await stage.advance("1s");
    expect(await stage.fetch({ queues: ["a", "b"] })).toBeDefined();
  });

  it.each([
    [{ max_per_second: 1 }, "queue:q"],
    [{ rate: 1, period: "second" }, "queue:q"],
    [{ key: "k", rate: { limit: 1, period: "PT1S" } }, "k"],
    [{ key: "k", throttle: { limit: 60, period: "PT1M" } }, "k"],
    [{ key: "k", limit: 1, period: 1 }, "k"],
  ])("%j is one start a second", async (rate_limit, key) => {
    await using stage = await openStage();
    for (let nth = 0; nth < 3; nth++) await stage.enqueue({ queue: "q", rate_limit });
    const fetch = async () => (await stage.fetch({ queues: ["q"] })) !== undefined;
    expect([await fetch(), await fetch()]).toEqual([true, false]);
    await stage.advance("1.2s");
    expect([await fetch(), await fetch()]).toEqual([true, false]);
    expect((await stage.get(`/rate-limits/${key}`)).body.rate).toEqual({ limit: 1, period: "PT1S" });
  });

  it("may drop a job, or send it away for a while", async () => {
    await using stage = await openStage();
    const limit = (on_limit: string, key: string) => ({ rate_limit: { key, concurrency: 1, on_limit } });
    await stage.enqueue(limit("drop", "d"));
    const dropped = await stage.enqueue(limit("drop", "d"));
    await stage.enqueue(limit("reschedule", "r"));
    const later = await stage.enqueue(limit("reschedule", "r"));
    await stage.advance("100ms");
    expect((await stage.job(dropped.id)).state).toBe("discarded");
    expect((await stage.job(later.id)).state).toBe("scheduled");
  });

  it("an operator's override replaces a limit until it is deleted", async () => {
    await using stage = await openStage();
    for (let nth = 0; nth < 3; nth++) await stage.enqueue({ rate_limit: { key: "k", concurrency: 1 } });
    const put = await stage.call("PUT", "/rate-limits/k", { concurrency: 2 });
    fits("PUT", "/rate-limits/:key", put);
    expect(put.body).toMatchObject({ concurrency: 2, override: { concurrency: 2 } });
    expect(await stage.fetch({ count: 3 })).toBeDefined();
    expect((await stage.get("/rate-limits/k")).body).toMatchObject({ active: 2, waiting: 1 });
    // As the admin UI writes it, and as the command line does.
    const rated = await stage.call("PUT", "/rate-limits/k/override", { limit: 100, period: "PT1M" });
    expect(rated.body).toMatchObject({ limit: 100, period: "PT60S", override: { limit: 100 } });
    const list = await stage.get("/rate-limits");
    fits("GET", "/rate-limits", list);
    expect(list.body.items).toMatchObject([{ key: "k", waiting: 1 }]);
    expect(list.body.pagination).toMatchObject({ total: 1, has_more: false });
    const deleted = await stage.call("DELETE", "/rate-limits/k/override");
    expect(deleted.body).toMatchObject({ deleted: true, concurrency: 1, rate: null });
    expect(deleted.body.override).toBeUndefined();
    const { items } = (await stage.get("/admin/audit")).body;
    expect(items.map(({ actor }: { actor: string }) => actor)).toEqual(["local", "local", "local"]);
  });

  it("are listed by page and by cursor", async () => {
    await using stage = await openStage();
    for (const key of ["a", "b", "c"]) await stage.enqueue({ rate_limit: { key, concurrency: 1 } });
    const first = await stage.get("/rate-limits?per_page=2");
    expect(first.body.items.map(({ key }: { key: string }) => key)).toEqual(["a", "b"]);
    expect(first.body.pagination).toMatchObject({ has_more: true, next_cursor: "b" });
    for (const query of ["per_page=2&page=2", "per_page=2&cursor=b"]) {
      const { body } = await stage.get(`/rate-limits?${query}`);
      expect(body.items.map(({ key }: { key: string }) => key)).toEqual(["c"]);
    }
    expect((await stage.get("/rate-limits/none")).status).toBe(404);
  });

  it.each([
    [{ key: "k" }, "rate_limit"],
    [{ key: "k", rate: { limit: 1, period: "PT1S" }, max_per_second: 1 }, "rate_limit"],
    [{ key: "", concurrency: 1 }, "options.rate_limit.key"],
    [{ key: "k", rate: { limit: 0, period: "PT1S" } }, "options.rate_limit.rate"],
    [{ key: "k", concurrency: 1, on_limit: "explode" }, "options.rate_limit.on_limit"],
  ])("%j is refused and the field named", async (rate_limit, field) => {
    await using stage = await openStage();
    const { status, body } = await stage.post("/jobs", { type: "a", args: [], options: { rate_limit } });
    expect([status, body.error.message.startsWith(field)]).toEqual([400, true]);
  });
});

describe("keys in paths", () => {
  it.each(["%00", "a%0Ab", `${"k".repeat(256)}`, "queue%20q"])("%s is refused", async (key) => {
    await using stage = await openStage();
    for (const method of ["GET", "DELETE"]) {
      const { status, body } = await stage.call(method, `/rate-limits/${key}`);
      expect([status, body.error.code]).toEqual([400, "invalid_request"]);
    }
    expect((await stage.get("/rate-limits?cursor=%00")).status).toBe(400);
  });
});
