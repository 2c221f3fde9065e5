import type { Flood } from "./flood.ts";
import { NAMED_FLOODS } from "./named-floods.ts";
import { Target } from "./target.ts";

const MB = 1_000_000;
const shown = (bytes: number) => `${(bytes / MB).toFixed(1)} MB`;
const many = <Item>(count: number, make: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, index) => make(index));
const largeJob = JSON.stringify({ type: "a.b", args: ["x".repeat(MB - 1_000)] });
const plainJob = { type: "a.b", args: [] };

async function fill(target: Target, jobs: number): Promise<void> {
  for (let count = 0; count < jobs; count++) {
    const { status, text } = await target.send("POST", "/jobs", largeJob);
    if (status !== 201) throw new Error(`a large job was refused: ${status} ${text.slice(0, 200)}`);
  }
}

/** The size of the largest reply to these requests, all sent at once. */
async function largestReply(target: Target, paths: readonly string[]): Promise<string> {
  const replies = await Promise.all(paths.map((path) => target.send("GET", path)));
  const statuses = [...new Set(replies.map(({ status }) => status))];
  return `largest reply ${shown(Math.max(...replies.map(({ text }) => text.length)))}, statuses ${statuses}`;
}

const pages: Flood = {
  name: "pages of jobs of 1 MB",
  async run(target, scale) {
    await fill(target, 100 * scale);
    const paths = ["/jobs?limit=200", "/admin/jobs?per_page=200", "/admin/jobs?per_page=20&page=3"];
    return largestReply(target, [...paths, ...paths, "/admin/jobs?search=nothing-like-this"]);
  },
};

const fetches: Flood = {
  name: "a fetch of 200 jobs of 1 MB",
  async run(target, scale) {
    await fill(target, 100 * scale);
    const { text } = await target.send("POST", "/workers/fetch", { queues: ["default"], count: 200 });
    return `reply ${shown(text.length)}`;
  },
};

const exports: Flood = {
  name: "20 exports of jobs of 1 MB at once",
  async run(target, scale) {
    await fill(target, 100 * scale);
    return largestReply(
      target,
      many(20, () => "/admin/export?per_page=200"),
    );
  },
};

const imports: Flood = {
  name: "imports that name stored jobs of 1 MB",
  async run(target, scale) {
    await fill(target, 100 * scale);
    const lines: object[] = [];
    let cursor = "";
    do {
      const page = JSON.parse((await target.send("GET", `/admin/export?per_page=200&cursor=${cursor}`)).text);
      for (const line of page.lines) lines.push({ ...line, payload: "null" });
      cursor = page.next_cursor ?? "";
    } while (cursor !== "");
    const bodies = many(10, () => ({ lines, dry_run: true }));
    const replies = await Promise.all(bodies.map((body) => target.send("POST", "/admin/import", body)));
    const known = JSON.parse(replies[0]?.text ?? "{}").results?.filter(
      ({ status }: { status: string }) => status === "exists",
    );
    return `${known?.length} of ${lines.length} lines known, statuses ${[...new Set(replies.map(({ status }) => status))]}`;
  },
};

const bulk: Flood = {
  name: "a bulk retry and cancel of jobs of 1 MB",
  async run(target, scale) {
    await fill(target, 100 * scale);
    const body = { filter: { queue: "default" }, confirm: true };
    const { status, text } = await target.send("POST", "/admin/jobs/bulk/cancel", body);
    return `${status} ${text.slice(0, 120)}`;
  },
};

const labels: Flood = {
  name: "beats with 3.9 MB of labels",
  async run(target, scale) {
    const label = "x".repeat(3_900_000);
    const beat = (index: number, size: object) =>
      target.send("POST", "/workers/heartbeat", { worker_id: `w${index}`, ...size });
    const refused = await beat(0, { labels: { label } });
    const queues = many(100, () => "q".repeat(128));
    for (let index = 0; index < 1_000 * scale; index++)
      await beat(index, { labels: { label: label.slice(0, 1_900) }, queues });
    const reply = await largestReply(
      target,
      many(4, () => "/workers?per_page=200"),
    );
    return `3.9 MB of labels: ${refused.status}; ${reply}`;
  },
};

const logs: Flood = {
  name: "log lines without end",
  async run(target, scale) {
    await target.send("POST", "/jobs", plainJob);
    const fetched = await target.send("POST", "/workers/fetch", { queues: ["default"] });
    const { id, fence } = JSON.parse(fetched.text).jobs[0];
    const lines = many(200, () => ({ message: "x".repeat(4_000) }));
    for (let count = 0; count < 100 * scale; count++)
      await target.send("POST", `/jobs/${id}/logs`, { lines, fence });
    return largestReply(target, [`/jobs/${id}/logs`]);
  },
};

const events: Flood = {
  name: "events with notes of 1 MB",
  async run(target, scale) {
    await target.send("POST", "/jobs", plainJob);
    const fetched = await target.send("POST", "/workers/fetch", { queues: ["default"] });
    const { id, fence } = JSON.parse(fetched.text).jobs[0];
    for (let count = 0; count < 100 * scale; count++)
      await target.send("PUT", `/jobs/${id}/progress`, { progress: 0.5, fence, data: "x".repeat(900_000) });
    return largestReply(target, [
      "/events?limit=1000",
      `/events/${id}/history`,
      "/events?types=job.progress",
    ]);
  },
};

const ENQUEUES = 200;

async function medianEnqueue(target: Target): Promise<number> {
  const times: number[] = [];
  for (let count = 0; count < ENQUEUES; count++) {
    const from = performance.now();
    await target.send("POST", "/jobs", plainJob);
    times.push(performance.now() - from);
  }
  return times.sort((a, b) => a - b)[ENQUEUES / 2] as number;
}

const followers: Flood = {
  name: "200 followers that catch up",
  async run(target, scale) {
    const jobs = many(1_000, () => plainJob);
    for (let count = 0; count < 10 * scale; count++) await target.send("POST", "/jobs/batch", { jobs });
    const alone = await medianEnqueue(target);
    const { text } = await target.send("GET", "/events?limit=1");
    const { cursor } = JSON.parse(text) as { cursor: string };
    const first = cursor.replace(/\d+$/, "0");
    const stop = new AbortController();
    const follow = async () => {
      const response = await fetch(`${target.url}/ojs/v1/events/stream?after=${first}`, {
        signal: stop.signal,
      });
      for await (const _chunk of response.body ?? []) if (stop.signal.aborted) return;
    };
    const streams = many(200, () => follow().catch(() => {}));
    const followed = await medianEnqueue(target);
    stop.abort();
    await Promise.all(streams);
    return `enqueue ${alone.toFixed(1)} ms alone, ${followed.toFixed(1)} ms beside them (medians)`;
  },
};

export const FLOODS: readonly Flood[] = [
  pages,
  fetches,
  exports,
  imports,
  bulk,
  labels,
  logs,
  events,
  followers,
  ...NAMED_FLOODS,
];

export interface FloodResult {
  readonly name: string;
  readonly said: string;
  /** The largest memory of the server process, in bytes. */
  readonly peak: number;
}

/** Runs one flood against a server of its own. */
export async function runFlood(flood: Flood, store: string, scale: number): Promise<FloodResult> {
  await using target = await Target.start(store);
  const said = await flood.run(target, scale);
  return { name: flood.name, said, peak: (await target.measure()).peak };
}
