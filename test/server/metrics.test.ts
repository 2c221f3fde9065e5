import { afterEach, describe, expect, it } from "vitest";
import { defineJob, unchecked } from "../../src/core/job/job-definition.ts";
import { processor } from "../../src/engine/attempt/processor.ts";
import { Exposition } from "../../src/server/metrics/exposition.ts";
import { createMetrics } from "../../src/server/metrics/metrics.ts";
import { openTestEngine, type TestEngine } from "../../src/testing/index.ts";
import { openStage } from "./stage.ts";

let test: TestEngine;
afterEach(() => test?.close());

/** The samples of a page: every line must be one, or a comment in its form. */
function samplesOf(text: string): Map<string, number> {
  const samples = new Map<string, number>();
  const typed = new Set<string>();
  for (const line of text.trimEnd().split("\n")) {
    const head = /^# TYPE (\w+) (counter|gauge|histogram)$/.exec(line);
    if (head) {
      expect(typed, "each family is declared once").not.toContain(head[1]);
      typed.add(head[1] as string);
    }
    if (line.startsWith("#")) {
      expect(line).toMatch(/^# (HELP \w+ .+|TYPE \w+ (counter|gauge|histogram))$/);
      continue;
    }
    const match = /^([a-z_]+)(\{(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*\})? (-?[\d.e+]+)$/.exec(line);
    expect(match, line).not.toBeNull();
    const [, name = "", labels = "", value] = match as RegExpExecArray;
    expect(typed).toContain(
      name.replace(/_(bucket|sum|count)$/, (suffix) => (typed.has(name) ? suffix : "")),
    );
    expect(samples.has(name + labels), line).toBe(false);
    samples.set(name + labels, Number(value));
  }
  return samples;
}

const render = defineJob({
  type: "page.render",
  payload: unchecked<{ takes: number; fails?: boolean }>(),
  timeouts: { attempt: "10s", grace: "1s" },
  retry: { attempts: 1 },
});

async function open(): Promise<{
  read: () => Promise<Map<string, number>>;
  metrics: ReturnType<typeof createMetrics>;
}> {
  test = await openTestEngine();
  const metrics = createMetrics(test.engine, test.system);
  return { metrics, read: async () => samplesOf(await metrics.text()) };
}

function work(): void {
  test.engine.work({
    processors: [
      processor(render, async ({ payload, signal }) => {
        await test.sleep(`${payload.takes}ms`, signal);
        if (payload.fails) throw new Error("no");
      }),
    ],
  });
}

describe("metrics", () => {
  it("metrics of a new server are valid", async () => {
    const { read } = await open();
    const samples = await read();
    expect(samples.get("curfew_stuck_total")).toBe(0);
    expect(samples.get("ojs_workers_active")).toBe(0);
    expect(samples.get('ojs_queue_depth{queue="default",state="available"}')).toBe(0);
  });

  it("count running jobs and dead letters by queue, under the names of Open Job Spec", async () => {
    await using stage = await openStage();
    const once = { retry: { max_attempts: 1, on_exhaustion: "dead_letter" } };
    const { id } = await stage.enqueue(once);
    await stage.enqueue(once);
    await stage.fetch({ count: 2 });
    await stage.post("/workers/nack", { job_id: id, error: { message: "no" } });
    const { body } = await stage.call("GET", "http://127.0.0.1/metrics");
    expect(body).toContain('ojs_workers_busy{queue="default"} 1');
    expect(body).toContain('ojs_dead_letter_added_total{queue="default",type="test.job"} 1');
  });

  it("tell successes, near misses, timeouts and failures apart", async () => {
    const { read } = await open();
    work();
    const add = (takes: number, fails = false) => test.engine.enqueue(render, { takes, fails });
    await Promise.all([add(100), add(9_500), add(60_000), add(20, true)]);
    await test.advance("2m");
    const samples = await read();
    const of = (name: string, more = "") => samples.get(`${name}{queue="default",type="page.render"${more}}`);
    expect(of("ojs_job_enqueued_total")).toBe(4);
    expect(of("ojs_job_completed_total")).toBe(2);
    expect(of("ojs_job_failed_total")).toBe(2);
    expect(of("curfew_near_misses_total")).toBe(1);
    expect(of("ojs_job_queue_time_seconds_count")).toBe(4);
    expect(of("ojs_job_duration_seconds_count", ',state="completed"')).toBe(2);
    expect(of("ojs_job_duration_seconds_sum", ',state="completed"')).toBeCloseTo(9.6, 1);
    expect(of("ojs_job_duration_seconds_bucket", ',state="completed",le="0.25"')).toBe(1);
    expect(of("ojs_job_duration_seconds_bucket", ',state="completed",le="+Inf"')).toBe(2);
    expect(of("ojs_job_duration_seconds_count", ',state="discarded"')).toBe(2);
    expect(
      samples.get(
        'ojs_job_timeout_count_total{timeout_kind="execution",mode="fail",queue="default",job_type="page.render"}',
      ),
    ).toBe(1);
    expect(samples.get("curfew_fire_lateness_seconds_count")).toBeGreaterThan(0);
    expect(samples.get("curfew_started_total")).toBe(4);
  });

  it("measure the wait in the queue from when a job was due, not from its creation", async () => {
    const { read } = await open();
    await test.engine.enqueue(render, { takes: 1 }, { delay: "1h" });
    await test.advance("1h");
    await test.advance("7s");
    work();
    await test.advance("1m");
    const sum = (await read()).get('ojs_job_queue_time_seconds_sum{queue="default",type="page.render"}');
    expect(sum).toBeGreaterThanOrEqual(7);
    expect(sum).toBeLessThan(10);
  });

  it("depths are read from the store seldom and cached in between", async () => {
    const { read } = await open();
    let asked = 0;
    const { depth } = test.engine.queues;
    test.engine.queues.depth = (queue) => {
      asked += 1;
      return depth.call(test.engine.queues, queue);
    };
    const available = async () => (await read()).get('ojs_queue_depth{queue="default",state="available"}');
    expect(await available()).toBe(0);
    await test.engine.enqueue(render, { takes: 1 });
    for (let round = 0; round < 50; round++) expect(await available()).toBe(0);
    expect(asked).toBe(1);
    await test.advance("11s");
    await available();
    await test.settle();
    expect(await available()).toBe(1);
    expect(asked).toBe(2);
  });

  it("the number of series is bounded for any number of types and queues", async () => {
    const { read } = await open();
    // Somebody may really call his jobs so; a page must not have the series twice.
    await test.engine.enqueue(defineJob({ type: "other", payload: unchecked<null>() }), null, {
      queue: "other",
    });
    for (let index = 0; index < 700; index++) {
      const type = defineJob({ type: `made.up${index}`, payload: unchecked<null>() });
      await test.engine.enqueue(type, null, { queue: `q${index}` });
    }
    const samples = await read();
    const series = [...samples.keys()].filter((name) => name.startsWith("ojs_job_enqueued_total"));
    expect(series).toHaveLength(501);
    expect(samples.get('ojs_job_enqueued_total{queue="other",type="other"}')).toBe(201);
    expect([...samples.keys()].filter((name) => name.startsWith("ojs_queue_depth"))).toHaveLength(20 * 8);
  });

  it("metrics are served while the store does not answer", async () => {
    const { read } = await open();
    test.engine.queues.depth = () => Promise.reject(new Error("down"));
    expect((await read()).get("curfew_lost_total")).toBe(0);
  });

  it("count requests by route and status", async () => {
    const { read, metrics } = await open();
    const jobs = metrics.route("POST", "/ojs/v1/jobs");
    metrics.route("GET", "/never");
    for (const status of [201, 201, 400]) jobs.count(status, 3);
    const samples = await read();
    expect(samples.get('curfew_http_requests_total{method="POST",route="/ojs/v1/jobs",status="201"}')).toBe(
      2,
    );
    expect(samples.get('curfew_http_requests_total{method="POST",route="/ojs/v1/jobs",status="400"}')).toBe(
      1,
    );
    const bucket =
      'curfew_http_request_duration_seconds_bucket{method="POST",route="/ojs/v1/jobs",le="0.005"}';
    expect(samples.get(bucket)).toBe(3);
    expect([...samples.keys()].some((name) => name.includes("/never"))).toBe(false);
  });

  it("label values are escaped", () => {
    const text = new Exposition().gauge("x", "help", [[{ a: 'q"\\\n' }, 1]]).text();
    expect(text).toBe('# HELP x help\n# TYPE x gauge\nx{a="q\\"\\\\\\n"} 1\n');
  });
});
