import { expect, it } from "vitest";
import { CurfewError } from "../../src/core/errors.ts";
import { openStage } from "./stage.ts";

const job = { type: "test.job", args: [] };

it.each([
  ["nothing at all", "/jobs", "", "body: it is missing; send an object"],
  ["a list", "/jobs", [], "body: [] is not valid; send an object"],
  ["no type", "/jobs", { args: [] }, "type: it is missing; send a text"],
  ["args that are no list", "/jobs", { ...job, args: { a: 1 } }, 'args: {"a":1} is not valid; send a list'],
  [
    "a priority out of range",
    "/jobs",
    { ...job, priority: 101 },
    "priority: 101 is not valid; send 100 at most",
  ],
  ["half a priority", "/jobs", { ...job, priority: 1.5 }, "priority: 1.5 is not valid; send a whole number"],
  ["no timeout", "/jobs", { ...job, timeout: 0 }, "timeout: 0 is not valid; send 1 at least"],
  [
    "a text for a timeout",
    "/jobs",
    { ...job, timeout: "30" },
    'timeout: "30" is not valid; send a number or "none"',
  ],
  [
    "an unknown mode",
    "/jobs",
    { ...job, timeout_mode: "kill" },
    'timeout_mode: "kill" is not valid; send "fail" or "discard"',
  ],
  [
    "a bad type in a batch",
    "/jobs/batch",
    { jobs: [job, { ...job, type: "A" }] },
    'jobs.1.type: "A" is not valid; use lower-case words joined by dots, such as "card.charge"',
  ],
  ["no queues", "/workers/fetch", { queues: [] }, "queues: [] is not valid; send 1 entry at least"],
  [
    "no visibility",
    "/jobs",
    { ...job, visibility_timeout: "PT0S" },
    'visibility_timeout: "PT0S" is not valid; use a duration of one millisecond at least',
  ],
  [
    "a total that is shorter than its attempt",
    "/jobs",
    { ...job, timeout: 5, total_timeout: 1 },
    'total_timeout: "1000ms" contradicts another timeout; it is shorter than timeout (5s): make total at least as long',
  ],
  [
    "two visibilities",
    "/jobs",
    { ...job, visibility_timeout: 9, visibility_timeout_ms: 1 },
    "visibility_timeout_ms: 1 contradicts visibility_timeout: 9; send one of them",
  ],
  [
    "a job that has expired",
    "/jobs",
    { ...job, expires_at: "2020-01-01T00:00:00Z" },
    /^expires_at: "2020-01-01T00:00:00\.000Z" ends at or before/,
  ],
  ["a limit that is no number", "/jobs?limit=none", undefined, 'limit: "none" is not valid; send a number'],
  [
    "a name that not every store can keep",
    "/workers/fetch",
    { queues: ["q"], worker_id: "a\0" },
    'worker_id: "a\\u0000" is not valid; use a name without control characters',
  ],
  [
    "a cursor beyond what every store counts to",
    "/events?after=9999999999999999999~0",
    undefined,
    'after: "9999999999999999999~0" is not a cursor of this server; leave it out to start over',
  ],
  [
    "a step without arguments",
    "/workflows",
    { type: "chain", steps: [{ type: "a.b" }] },
    "steps.0.args: it is missing; send a list",
  ],
  [
    "a step of an inner group without arguments",
    "/workflows",
    { type: "chain", steps: [{ type: "group", jobs: [job, { type: "a.b", args: 3 }] }] },
    "steps.0.jobs.1.args: 3 is not valid; send a list",
  ],
  [
    "an inner group without jobs",
    "/workflows",
    { type: "chain", steps: [{ type: "group" }] },
    "steps.0.steps: it is missing; name the steps of a chain, or the jobs of a group or batch",
  ],
  [
    "a cron without a job",
    "/cron",
    { name: "c", cron: "@daily" },
    'type: it is missing; send the type of the job, such as "card.charge", or a job_template',
  ],
  [
    "an option of a cron",
    "/cron",
    { name: "c", cron: "@daily", ...job, options: { priority: 1000 } },
    "options.priority: 1000 is not valid; send 100 at most",
  ],
  [
    "a zone of a cron",
    "/cron",
    { name: "c", cron: "@daily", ...job, timezone: "Mars/X" },
    /^timezone: "Mars\/X" is not a known time zone; use an IANA name/,
  ],
  [
    "a channel",
    "/events/stream?channel=foo",
    undefined,
    'channel: "foo" is not valid; use "job:<id>", "queue:<name>" or "all"',
  ],
])("%s is refused with the field, the value and the fix", async (_what, path, body, message) => {
  await using stage = await openStage();
  const { status, body: reply } = await stage.call(body === undefined ? "GET" : "POST", path, body);
  expect(status).toBe(400);
  expect(reply.error.message).toEqual(typeof message === "string" ? message : expect.stringMatching(message));
});

it("a retry policy that cannot be kept is 422", async () => {
  await using stage = await openStage();
  const { status, body } = await stage.post("/jobs", { ...job, options: { retry: { max_attempts: -1 } } });
  expect(status).toBe(422);
  expect(body.error).toMatchObject({
    type: "validation_error",
    message: "options.retry.max_attempts: -1 is not valid; send 0 at least",
  });
});

it("a method that a path does not serve is 405, and the answer says which it does", async () => {
  await using stage = await openStage();
  const wrong = await stage.call("PUT", "/jobs");
  expect(wrong.status).toBe(405);
  expect(wrong.headers.get("allow")).toBe("OPTIONS, POST, GET, HEAD");
  const asked = await stage.call("OPTIONS", "/workers/fetch");
  expect(asked.status).toBe(204);
  expect(asked.headers.get("allow")).toBe("OPTIONS, POST");
  const nowhere = await stage.call("OPTIONS", "/nowhere");
  expect(nowhere.status).toBe(404);
});

it("fields that nobody knows are kept, whatever their name or value", async () => {
  await using stage = await openStage();
  const odd = { constructor: 1, toString: "x", hasOwnProperty: [null], x_null: null, "": { a: "b" } };
  const { body } = await stage.post("/jobs", { ...job, ...odd, options: { valueOf: true } });
  const found = await stage.job(body.job.id);
  for (const [name, value] of Object.entries({ ...odd, valueOf: true })) expect(found[name]).toEqual(value);
});

it("a start from now counts from the creation of the job, to the millisecond", async () => {
  await using stage = await openStage();
  const { job: made } = (await stage.post("/jobs", { ...job, scheduled_at: "+PT1H" })).body;
  expect(Date.parse(made.scheduled_at) - Date.parse(made.created_at)).toBe(3_600_000);
  const { status } = await stage.post("/jobs", { ...job, scheduled_at: "+PT1H", total_timeout: 3_600 });
  expect(status).toBe(400);
});

it("a 404 names the resource and has a fitting hint", async () => {
  await using stage = await openStage();
  const id = (await stage.enqueue()).id;
  const asked = [
    [`/dead-letter/${id}`, "dead letter"],
    ["/dead-letter/nothing", "dead letter"],
    ["/workers/nobody/health", "worker"],
    [`/jobs/${id}/checkpoint`, "checkpoint of job"],
    ["/jobs/nothing", "job"],
  ] as const;
  const hints = new Set<string>();
  for (const [path, kind] of asked) {
    const { status, body } = await stage.get(path);
    expect(status).toBe(404);
    expect(body.error.details.resource_type).toBe(kind);
    hints.add(body.error.hint);
  }
  expect(hints.size).toBe(4);
});

it("a checkpoint cannot be null, and asking so does not forget the one that was saved", async () => {
  await using stage = await openStage();
  const { id } = await stage.enqueue();
  await stage.call("PUT", `/jobs/${id}/checkpoint`, { state: { page: 1 } });
  const { status, body } = await stage.call("PUT", `/jobs/${id}/checkpoint`, { state: null });
  expect(status).toBe(400);
  expect(body.error.message).toBe("state: null is not valid; send a value; DELETE forgets the saved one");
  expect((await stage.get(`/jobs/${id}/checkpoint`)).body.state).toEqual({ page: 1 });
});

it("a beat answers with the silence that is allowed after it", async () => {
  await using stage = await openStage();
  const { id } = await stage.enqueue({ heartbeat_timeout: 60 });
  await stage.fetch({ worker_id: "w" });
  await stage.advance("20s");
  const { body } = await stage.post("/workers/heartbeat", { worker_id: "w", active_jobs: [id] });
  const { stall_at, server_time } = body.jobs[0].deadlines;
  expect(Date.parse(stall_at) - Date.parse(server_time)).toBe(60_000);
});

it("a failing store is a 503 with Retry-After and without the store's message", async () => {
  await using stage = await openStage();
  const { rows } = stage.engine.service;
  const { load } = rows;
  rows.load = () =>
    Promise.reject(new CurfewError("store_failed", "PostgreSQL: no route to db-7.internal:5432"));
  const { status, headers, body } = await stage.get("/jobs/01a1e230-7865-7003-8005-c45d5220a9ee");
  rows.load = load;
  expect(status).toBe(503);
  expect(headers.get("retry-after")).toBe("1");
  expect(body.error).toMatchObject({ code: "backend_error", retryable: true });
  expect(JSON.stringify(body)).not.toMatch(/PostgreSQL|internal:/);
});
