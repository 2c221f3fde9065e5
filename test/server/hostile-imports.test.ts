import { describe, expect, it } from "vitest";
import type { JobLine } from "../../src/core/job/transfer/job-line.ts";
import { adaptive, defineJob, processor, unchecked } from "../../src/index.ts";
import { createKey } from "../../src/server/access/auth.ts";
import { openStage, type Stage } from "./stage.ts";

const job = defineJob({ type: "a.b", queue: "local", payload: unchecked<unknown>() });
const RETRY = {
  attempts: 5,
  except: [],
  retryFit: "full",
  onStall: "retry",
  onExhausted: "discard",
} as const;
const FIELDS = ["attempt", "grace", "heartbeat", "mode", "attempts", "backoff", "except", "retryFit"];
const POLICY = {
  attempt: 1_000,
  grace: 0,
  heartbeat: null,
  mode: "fail",
  retention: { completed: 0, discarded: 1e9, cancelled: 1e9 },
  beats: "worker",
  hears: true,
  sources: Object.fromEntries(
    [...FIELDS, "onStall", "onExhausted", "retention"].map((field) => [field, "enqueue"]),
  ),
};
const backoff = (value: object) => ({
  attempt: 2,
  policy: { ...POLICY, retry: { ...RETRY, backoff: { max: 1_000, jitter: false, ...value } } },
});

/** Changes of a line that a hostile or broken exporter may write. */
const CHANGES: readonly (readonly [string, object])[] = [
  ["delays without any", backoff({ kind: "delays", delays: [] })],
  ["a power that overflows", backoff({ kind: "polynomial", first: 0, power: 1e308 })],
  ["a factor that overflows", backoff({ kind: "exponential", first: 0, factor: 1e308 })],
  ["a factor below one", backoff({ kind: "exponential", first: 1_000, factor: 0 })],
  ["fields of the wire that are a text", { options: { wire: { fields: "abc" } } }],
  ["fields of the wire that are a list", { options: { wire: { fields: [1, 2] } } }],
  ["no fields of the wire", { options: { wire: { fields: {} } } }],
  ["fields of the wire that replace its id", { options: { wire: { fields: { id: "x", fence: 7 } } } }],
  ["one argument that is spread", { payload: "7", options: { wire: { spread: true } } }],
  ["a pace without a kind", { options: { pace: {} } }],
  ["a pace of another kind", { options: { pace: { kind: "debounce" } }, state: "scheduled" }],
  ["a rule of an adaptive limit that is none", { options: { settings: { timeouts: { adaptive: {} } } } }],
  ["progress that is null", { attempt: 1, progress: "null" }],
  ["progress that is a text", { attempt: 1, progress: '"half"' }],
  ["a checkpoint that is null", { attempt: 1, checkpoint: "null" }],
  ["redacted paths of nothing", { options: { redact: [["nothing", "x"]] } }],
  ["an empty redacted path", { options: { redact: [[]] } }],
  ["100 redacted paths", { options: { redact: Array.from({ length: 100 }, (_, n) => ["payload", `${n}`]) } }],
  ["a tenant that is a number", { options: { meta: { tenant_id: 7 } } }],
  ["a tenant that is no name", { options: { meta: { tenant_id: "a b\n" } } }],
  ["a large meta", { options: { meta: { text: "x".repeat(500_000) } } }],
  ["members of every object", JSON.parse('{"options":{"meta":{"__proto__":{"a":1},"constructor":1}}}')],
  ["a start before its creation", { dueAt: "1970-01-01T00:00:00Z", createdAt: "2999-01-01T00:00:00Z" }],
  ["a payload that claims to be encrypted", { payload: '{"$curfew.sealed":"k"}' }],
];

async function lineWith(source: Stage, change: object): Promise<JobLine> {
  await source.engine.enqueue(job, { n: 1 });
  const { lines } = await source.engine.exportJobs();
  return { ...(lines[0] as JobLine), ...change };
}

describe("a hostile line of an import", () => {
  it.each(CHANGES)("%s spoils nothing for others", async (_name, change) => {
    await using source = await openStage({ seed: 99 });
    await using stage = await openStage();
    const line = await lineWith(source, change);
    const [result] = await stage.engine.importJobs([line]);
    expect(["created", "invalid"]).toContain(result?.status);
    const good = await stage.engine.enqueue(job, { n: 2 });
    for (const path of ["/jobs?limit=50", "/admin/jobs?per_page=50", "/admin/export", `/jobs/${line.id}`]) {
      const { status, body } = await stage.get(path);
      expect([path, typeof body, status < 500]).toEqual([path, "object", true]);
    }
    if (result?.status === "created") {
      const shown = (await stage.get(`/jobs/${line.id}`)).body;
      expect([shown.job.id, Array.isArray(shown.job.args)]).toEqual([line.id, true]);
      expect((await stage.engine.why(line.id)).reasons.length).toBeGreaterThan(0);
      expect(await stage.engine.explain(line.id)).toBeDefined();
    }
    expect((await stage.engine.find({})).jobs.length).toBeGreaterThan(0);
    // A worker beside the store takes both. The handler fails, so that the retry policy decides.
    stage.engine.work({
      queues: { local: { concurrency: 5 } },
      processors: [
        processor(job, ({ payload }) => {
          if ((payload as { n?: number } | null)?.n === 2) return;
          throw new Error("no");
        }),
      ],
    });
    await stage.advance("5m");
    expect((await stage.engine.job(good.id).load())?.state).toBe("completed");
    const left = await stage.engine.job(line.id).load();
    expect(["discarded", undefined, "scheduled"]).toContain(left?.state);
  });
});

it("jobs with an adaptive limit, and jobs that a key has fetched, are imported as they were exported", async () => {
  const key = createKey();
  const keys = [{ name: "ops", role: "admin", hash: key.hash }] as const;
  await using source = await openStage({ seed: 99 }, { keys });
  await using target = await openStage();
  const by = { Authorization: `Bearer ${key.key}` };
  const learning = { attempt: adaptive({ floor: "1s", ceiling: "1m" }) };
  const waiting = await source.engine.enqueue(job, { n: 1 }, { timeouts: learning });
  await source.call("POST", "/jobs", { type: "a.b", args: [1] }, by);
  const fetched = await source.call("POST", "/workers/fetch", { queues: ["default"] }, by);
  const { id, fence } = fetched.body.jobs[0];
  await source.call("POST", "/workers/nack", { job_id: id, fence, error: { message: "no" } }, by);
  const { lines } = await source.engine.exportJobs();
  expect((lines as JobLine[]).find((line) => line.id === id)?.policy).toMatchObject({ caller: "ops" });
  const results = await target.engine.importJobs(lines);
  expect(results.map(({ status, message }) => [status, message])).toEqual([
    ["created", undefined],
    ["created", undefined],
  ]);
  expect((await target.engine.job(waiting.id).load())?.state).toBe("available");
});
