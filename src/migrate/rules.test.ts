import { describe, expect, it } from "vitest";
import { intervalCron, translateBullmqJob, translateBullmqScheduler } from "./bullmq-rules.ts";
import { translateCrontab, translateGraphileJob } from "./graphile-worker-rules.ts";
import { type PgBossJob, translatePgBossJob } from "./pg-boss-rules.ts";

const now = 1_700_000_000_000;
const names = { renames: new Map<string, string>(), into: undefined };

const bossJob: PgBossJob = {
  id: "0b0b0b0b-0000-4000-8000-000000000000",
  name: "mail",
  priority: 0,
  state: "created",
  data: '{"a": 1}',
  output: null,
  retry_limit: 2,
  retry_count: 0,
  retry_delay: 0,
  retry_backoff: false,
  retry_delay_max: null,
  expire: 900,
  heartbeat: null,
  singleton_key: null,
  has_slot: false,
  group_id: null,
  start_after: now,
  created_on: "1699999999999123",
  completed_on: null,
  keep_until: now + 1_000,
  dead_letter: null,
  policy: "standard",
  has_dependencies: false,
  source_name: null,
  source_retry_count: null,
  source_output: null,
};
const boss = (changes: Partial<PgBossJob>) =>
  translatePgBossJob({ ...bossJob, ...changes }, { schema: "pgboss", names, now });

describe("rules for pg-boss", () => {
  it("keep_until ends a job that has not started, and not a retry", () => {
    expect(boss({})).toMatchObject({
      value: { waitAt: new Date(now + 1_000).toISOString(), state: "available" },
    });
    const retry = boss({ state: "retry", retry_count: 1, start_after: now + 5 });
    expect(retry).toMatchObject({ value: { state: "retryable", attempt: 2 } });
    expect(retry).not.toHaveProperty("value.waitAt");
  });

  it("retries become attempts, with a backoff in seconds", () => {
    expect(boss({ retry_delay: 5 })).toMatchObject({
      value: {
        options: { settings: { retry: { attempts: 3, backoff: { kind: "constant", first: 5_000 } } } },
      },
    });
    expect(boss({ retry_delay: 0, retry_backoff: true, retry_delay_max: 60 })).toMatchObject({
      value: {
        options: {
          settings: { retry: { backoff: { kind: "exponential", first: 1_000, factor: 2, max: 60_000 } } },
        },
      },
    });
  });

  it.each([
    ["short", { uniqueKey: expect.any(String) }, ["wider_key"]],
    ["stately", { uniqueKey: expect.any(String), limitKey: "mail:k" }, ["wider_key"]],
    ["exclusive", { uniqueKey: expect.any(String) }, []],
    ["singleton", { limitKey: "mail:k" }, []],
    ["key_strict_fifo", { limitKey: "mail:k", options: { limit: { concurrency: 1, strict: true } } }, []],
  ])("the policy %s becomes a key", (policy, value, reasons) => {
    const ruled = boss({ policy, singleton_key: "k" });
    expect(ruled).toMatchObject({ value, changes: reasons.map((reason) => ({ reason })) });
  });

  it("a throttled job and a group are noted", () => {
    expect(boss({ has_slot: true, group_id: "g" })).toMatchObject({
      changes: [{ reason: "group" }, { reason: "throttle" }],
    });
  });

  it.each([
    { start_after: Number.POSITIVE_INFINITY },
    { created_on: "Infinity" },
    { created_on: "-1" },
    { start_after: Number.NaN },
  ])("a time that is none is refused: %j", (changes) => {
    expect(boss(changes)).toMatchObject({ refused: { reason: "invalid" } });
  });

  it("a job that is kept for ever has no wait limit", () => {
    expect(boss({ keep_until: Number.POSITIVE_INFINITY })).not.toHaveProperty("value.waitAt");
  });

  it("an output that is no error is shown as JSON", () => {
    expect(boss({ state: "failed", output: '{"value": 5}', completed_on: now })).toMatchObject({
      value: { deadLetter: true, errors: [{ message: "5", at: now }] },
    });
  });
});

describe("rules for graphile-worker", () => {
  const job = {
    id: "12",
    task: "mail",
    queue_name: null,
    payload: "{}",
    priority: 200,
    run_at: now,
    attempts: 25,
    max_attempts: 25,
    last_error: "no",
    created_at: "1699999999999123",
    updated_at: now,
    key: "k",
  };

  it("a job without attempts left is a dead letter without its key", () => {
    const ruled = translateGraphileJob(job, { schema: "graphile_worker", names, now });
    expect(ruled).toMatchObject({
      value: { state: "discarded", priority: -100 },
      changes: [{ reason: "priority" }],
    });
    expect(ruled).not.toHaveProperty("value.uniqueKey");
  });

  it("a crontab has comments, options and payloads", () => {
    const lines = translateCrontab('# a\n\n0 1 * * * a ?queue=q {"n":1}\nhello\n', names);
    expect(lines).toMatchObject([
      { line: 3, ruled: { value: { type: "a", payload: '{"n":1}' }, changes: [{ reason: "group" }] } },
      { line: 4, ruled: { refused: { reason: "cron_invalid" } } },
    ]);
  });
});

describe("rules for BullMQ", () => {
  const job = {
    id: "1",
    name: "__default__",
    state: "waiting" as const,
    data: "{}",
    opts: {},
    attemptsMade: 0,
    timestamp: now,
    priority: 0,
    dueAt: null,
    processedOn: null,
    finishedOn: null,
    failedReason: null,
    stack: null,
    deduplicationId: null,
    isInFlow: false,
  };
  const bull = (changes: object) =>
    translateBullmqJob({ ...job, ...changes }, { queue: "mail", prefix: "bull", names, now });

  it("a job without a name has the type of its queue, one attempt and no delay", () => {
    expect(bull({})).toMatchObject({
      value: { type: "mail", options: { settings: { retry: { attempts: 1, backoff: { first: 0 } } } } },
    });
  });

  it("a backoff of the user's own, lifo and a throttled key are noted", () => {
    const opts = { attempts: 3, backoff: { type: "mine" }, lifo: true, deduplication: { id: "x", ttl: 5 } };
    const ruled = bull({ opts, deduplicationId: "x" });
    expect(ruled).toMatchObject({
      changes: expect.arrayContaining([
        expect.objectContaining({ reason: "backoff" }),
        expect.objectContaining({ reason: "order" }),
        expect.objectContaining({ reason: "throttle" }),
      ]),
    });
    expect(ruled).not.toHaveProperty("value.uniqueKey");
  });

  it.each([
    [1_000, "*/1 * * * * *"],
    [15_000, "*/15 * * * * *"],
    [60_000, "*/1 * * * *"],
    [7_200_000, "0 */2 * * *"],
    [86_400_000, "0 0 * * *"],
    [7_000, undefined],
    [90_000, undefined],
    [18_000_000, undefined],
    [500, undefined],
  ])("an interval of %d ms becomes %s", (interval, cron) => {
    expect(intervalCron(interval)).toBe(cron);
  });

  it("a scheduler with an end is refused", () => {
    const scheduler = { key: "k", name: "n", pattern: "* * * * *", endDate: now };
    expect(translateBullmqScheduler(scheduler, "q", names)).toMatchObject({
      refused: { reason: "cron_end" },
    });
  });
});
