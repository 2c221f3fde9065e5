import { describe, expect, it, onTestFinished, vi } from "vitest";
import { openStage, type Stage } from "./stage.ts";

interface Frame {
  readonly event?: string;
  readonly id?: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into frames whose shape is what they test.
  readonly data: any;
}

interface Line {
  readonly status: number;
  /** What has come so far and was not looked at before. */
  read(): Frame[];
  readonly isOver: boolean;
  leave(): Promise<void>;
}

function framesIn(text: string): Frame[] {
  return text.split("\n\n").flatMap((part) => {
    const fields = Object.fromEntries(part.split("\n").map((line) => line.split(/: (.*)/s).slice(0, 2)));
    return fields.data === undefined ? [] : [{ ...fields, data: JSON.parse(fields.data) }];
  });
}

/** Opens a line to a server on virtual time. */
async function follow({ server, test }: Stage, path: string, init: RequestInit = {}): Promise<Line> {
  const request = new Request(`http://127.0.0.1/ojs/v1${path}`, init);
  let response: Response | undefined;
  void Promise.resolve(server.fetch(request)).then((answer) => (response = answer));
  for (let turns = 0; !response && turns < 1_000; turns++) await test.settle();
  const { status, body } = response as Response;
  const reader = body?.getReader();
  let text = "";
  let isOver = !reader;
  const decoder = new TextDecoder();
  void (async () => {
    for (let chunk = await reader?.read(); chunk && !chunk.done; chunk = await reader?.read())
      text += decoder.decode(chunk.value, { stream: true });
    isOver = true;
  })();
  return {
    status,
    read() {
      const found = framesIn(text);
      text = "";
      return found;
    },
    get isOver() {
      return isOver;
    },
    leave: async () => reader?.cancel(),
  };
}

describe("the progress of a job", () => {
  it("a progress stream starts with the current progress, sends named and unnamed events, and ends with the job", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue();
    const job = await stage.fetch();
    const line = await follow(stage, `/jobs/${id}/progress/stream`);
    await stage.advance("100ms");
    expect(line.read()).toMatchObject([
      { data: { job_id: id, state: "active", progress: null } },
      { event: "progress", data: { state: "active" } },
    ]);
    const body = { progress: 0.5, data: { rows: 7 }, fence: job.fence };
    await stage.call("PUT", `/jobs/${id}/progress`, body);
    await stage.advance("1s");
    const [plain, named] = line.read();
    expect(plain?.event).toBeUndefined();
    expect(named).toMatchObject({ event: "progress", data: { progress: 0.5, data: { rows: 7 } } });
    expect(plain?.data).toEqual(named?.data);
    await stage.post("/workers/ack", { job_id: id });
    await stage.advance("1s");
    expect(line.read().at(-1)).toMatchObject({
      event: "completed",
      data: { job_id: id, state: "completed", progress: 1 },
    });
    expect(line.isOver).toBe(true);
  });

  it.each([
    ["cancelled", "cancelled", async (stage: Stage, id: string) => stage.post(`/jobs/${id}/cancel`)],
    [
      "discarded",
      "failed",
      async (stage: Stage, id: string) => {
        await stage.fetch();
        await stage.post("/workers/nack", { job_id: id, error: { code: "FAIL" } });
      },
    ],
  ])(
    "the progress stream of a job that is %s ends with %s, for late readers too",
    async (state, event, end) => {
      await using stage = await openStage();
      const { id } = await stage.enqueue();
      const early = await follow(stage, `/jobs/${id}/progress/stream`);
      await stage.advance("1s");
      await end(stage, id);
      await stage.advance("1s");
      const late = await follow(stage, `/jobs/${id}/progress/stream`);
      await stage.advance("1s");
      for (const line of [early, late]) {
        expect(line.read().at(-1)).toMatchObject({ event, data: { state } });
        expect(line.isOver).toBe(true);
      }
      // A browser comes back by itself, and stops when there is nothing more.
      const again = await follow(stage, `/jobs/${id}/progress/stream`, { headers: { "Last-Event-ID": "0" } });
      expect([again.status, again.isOver]).toEqual([204, true]);
    },
  );

  it("the progress stream of an unknown job is not found", async () => {
    await using stage = await openStage();
    expect((await stage.get("/jobs/0198a1b2-0000-7000-8000-00000000000f/progress/stream")).status).toBe(404);
  });
});

describe("live figures", () => {
  it("snapshots come at once and every three seconds, with the admin page's field names", async () => {
    await using stage = await openStage();
    await stage.enqueue({ retry: { initial_interval: "PT1M" } });
    const line = await follow(stage, "/admin/stats/stream");
    await stage.advance("100ms");
    expect(line.read()).toMatchObject([
      {
        event: "metrics",
        data: {
          queues: [{ queue: "default", available: 1, active: 0, scheduled: 0, retryable: 0 }],
          oldest_wait_ms: 0,
          throughput: {
            processed_per_second: 0,
            failed_per_second: 0,
            enqueued_per_second: expect.any(Number),
          },
          workers: { total: 0, active: [] },
          error_rate: 0,
        },
      },
    ]);
    const job = await stage.fetch();
    await stage.post("/workers/nack", { job_id: job.id, error: { code: "x", message: "no" } });
    await stage.advance("1s");
    const told = line.read();
    expect(told.find(({ event }) => event === "job.failed")?.data).toMatchObject({
      job_id: job.id,
      type: "test.job",
      queue: "default",
      attempt: 1,
      error: "no",
      timestamp: expect.any(String),
    });
    await stage.post("/workers/heartbeat", { worker_id: "w-1", active_jobs: 0 });
    await stage.advance("2s");
    expect(line.read().find(({ event }) => event === "metrics")?.data).toMatchObject({
      queues: [{ retryable: 1 }],
      oldest_wait_ms: null,
      workers: { total: 1, active: [{ id: "w-1", state: "running", activeJobs: 0 }] },
      error_rate: 100,
    });
    await line.leave();
  });

  it("a snapshot is made once for all readers, and not at all without readers", async () => {
    await using stage = await openStage();
    const stats = vi.spyOn(stage.engine, "stats");
    onTestFinished(() => stats.mockRestore());
    const lines = [];
    for (let nth = 0; nth < 20; nth++)
      lines.push(await follow(stage, `/admin/stats/stream${nth % 2 === 0 ? "" : `?queue=q-${nth}`}`));
    await stage.advance("9s");
    expect(stats.mock.calls.length).toBe(4);
    for (const line of lines) {
      const metrics = line.read().filter(({ event }) => event === "metrics");
      expect(metrics.length).toBeGreaterThanOrEqual(4);
      await line.leave();
    }
    stats.mockClear();
    await stage.advance("60s");
    expect(stats).not.toHaveBeenCalled();
  });

  it("go on after a store that failed for a moment", async () => {
    await using stage = await openStage();
    const stats = vi.spyOn(stage.engine, "stats").mockRejectedValueOnce(new Error("away"));
    onTestFinished(() => stats.mockRestore());
    const line = await follow(stage, "/admin/stats/stream");
    await stage.advance("1s");
    expect(line.read()).toEqual([]);
    await stage.advance("3s");
    expect(line.read().map(({ event }) => event)).toEqual(["metrics"]);
    await line.leave();
  });

  it("the stats stream filters events by queue", async () => {
    await using stage = await openStage();
    const line = await follow(stage, "/admin/stats/stream?queue=mine");
    await stage.enqueue({ queue: "mine" });
    await stage.enqueue({ queue: "other" });
    await stage.advance("1s");
    const queues = line.read().flatMap(({ event, data }) => (event === "job.enqueued" ? [data.queue] : []));
    expect(queues).toEqual(["mine"]);
    await line.leave();
  });
});

it("a HEAD request of a stream leaves no reader behind", async () => {
  await using stage = await openStage();
  const { id } = await stage.enqueue();
  const paths = [
    "/events/stream",
    "/admin/stats/stream",
    `/jobs/${id}/progress/stream`,
    "/queues/default/events",
  ];
  const latest = vi.spyOn(stage.engine.journal, "follow");
  for (const path of paths) {
    const line = await follow(stage, path, { method: "HEAD" });
    expect([line.status, line.isOver]).toEqual([200, true]);
  }
  await stage.advance("1s");
  // Each came and went: the journal is followed anew for everyone, and by nobody in the end.
  const signals = latest.mock.calls.map(([options]) => options?.signal?.aborted);
  expect(signals).toEqual(paths.map(() => true));
});

it("a reader that catches up faster than the live feed gets no event twice", async () => {
  await using stage = await openStage();
  const read = stage.engine.journal.read.bind(stage.engine.journal);
  const slow = await follow(stage, "/events/stream?types=job.enqueued");
  await stage.advance("1s");
  const ids: string[] = [];
  // The journal gives them to followers only when time passes; a read has them at once.
  for (let nth = 0; nth < 3; nth++) ids.push((await stage.enqueue()).id);
  const { events } = await read({ after: null });
  expect(events).toHaveLength(3);
  const fast = await follow(stage, "/events/stream?types=job.enqueued&after=0");
  await stage.advance("1s");
  ids.push((await stage.enqueue()).id);
  await stage.advance("1s");
  for (const line of [slow, fast]) {
    expect(line.read().map(({ data }) => data.job_id)).toEqual(ids);
    await line.leave();
  }
});
