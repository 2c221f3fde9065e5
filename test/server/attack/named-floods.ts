import type { Flood } from "./flood.ts";
import type { Target } from "./target.ts";

const MB = 1_000_000;
const TIMES = 6;
const large = "x".repeat(MB - 1_000);

/** Enqueues jobs of 1 MB and returns their ids. */
async function fillNamed(target: Target, jobs: number): Promise<string[]> {
  const ids: string[] = [];
  for (let count = 0; count < jobs; count++) {
    const { status, text } = await target.send("POST", "/jobs", { type: "a.b", args: [large] });
    if (status !== 201) throw new Error(`a large job was refused: ${status} ${text.slice(0, 200)}`);
    ids.push(JSON.parse(text).job.id);
  }
  return ids;
}

/** Sends the same request several times at once. Returns what to print, and fails if a reply is an error of the server. */
async function repeat(target: Target, method: string, path: string, body?: object): Promise<string> {
  const replies = await Promise.all(Array.from({ length: TIMES }, () => target.send(method, path, body)));
  const most = Math.max(...replies.map(({ text }) => text.length));
  return `statuses ${[...new Set(replies.map(({ status }) => status))]}, largest reply ${(most / MB).toFixed(1)} MB`;
}

/** A flood of requests that name many stored jobs of 1 MB by their ids. */
function named(name: string, method: string, path: string, body: (ids: readonly string[]) => object): Flood {
  return {
    name,
    async run(target, scale) {
      const ids = await fillNamed(target, 100 * scale);
      return repeat(target, method, path, body(ids));
    },
  };
}

const beats = named("beats that name jobs of 1 MB", "POST", "/workers/heartbeat", (ids) => ({
  worker_id: "w-1",
  active_jobs: ids,
}));

const reports = named("reports on jobs of 1 MB that nobody holds", "POST", "/workers/ack/batch", (ids) => ({
  jobs: ids.map((job_id) => ({ job_id, fence: 1 })),
}));

const known = named("batches of jobs with known ids", "POST", "/jobs/batch", (ids) => ({
  jobs: ids.map((id) => ({ id, type: "a.b", args: [] })),
}));

const children = named("jobs whose parents have 1 MB", "POST", "/jobs/batch", (ids) => ({
  jobs: ids.map((parent_id) => ({ type: "a.b", args: [], parent_id })),
}));

/** A worker reports a result of 1 MB for each step. */
const steps: Flood = {
  name: "a workflow whose steps have results of 1 MB",
  async run(target, scale) {
    const count = Math.max(1, Math.round(66 * scale));
    const made = await target.send("POST", "/workflows", {
      type: "group",
      jobs: Array.from({ length: count }, () => ({ type: "a.b", args: [] })),
    });
    const { id } = JSON.parse(made.text).workflow;
    for (let done = 0; done < count; done++) {
      const fetched = await target.send("POST", "/workers/fetch", { queues: ["default"] });
      const { id: job_id, fence } = JSON.parse(fetched.text).jobs[0];
      const { status } = await target.send("POST", "/workers/ack", { job_id, fence, result: large });
      if (status !== 200) throw new Error(`a large result was refused: ${status}`);
    }
    const said: string[] = [];
    for (const path of [`/workflows/${id}/progress`, `/workflows/${id}/jobs`, `/workflows/${id}`])
      said.push(await repeat(target, "GET", path));
    said.push(await repeat(target, "POST", "/calls/workflows.steps", { args: [id, { limit: 200 }] }));
    return said.join("; ");
  },
};

/** Holders of unique keys have 1 MB each; a batch collides with all of them. */
const holders: Flood = {
  name: "unique jobs whose keys belong to jobs of 1 MB",
  async run(target, scale) {
    const unique = { keys: ["args"], on_conflict: "ignore" };
    const count = 100 * scale;
    const job = (index: number, args: unknown[]) => ({
      type: "a.b",
      args,
      unique: { ...unique, keys: ["type", "meta"], meta_keys: ["n"] },
      meta: { n: index },
    });
    for (let index = 0; index < count; index++) {
      const { status, text } = await target.send("POST", "/jobs", job(index, [large]));
      if (status !== 201) throw new Error(`a unique job was refused: ${status} ${text.slice(0, 300)}`);
    }
    const jobs = Array.from({ length: count }, (_, index) => job(index, []));
    return repeat(target, "POST", "/jobs/batch", { jobs });
  },
};

/** A cron that ran often, with 1 MB for each run. */
const crons: Flood = {
  name: "the history of a cron whose jobs have 1 MB",
  async run(target, scale) {
    const body = { name: "large", cron: "0 0 1 1 *", type: "a.b", args: [large] };
    const made = await target.send("POST", "/cron", body);
    if (made.status >= 300) throw new Error(`a cron was refused: ${made.status} ${made.text.slice(0, 300)}`);
    for (let index = 0; index < 100 * scale; index++) await target.send("POST", "/cron/large/trigger", {});
    return repeat(target, "GET", "/cron/large/history?limit=100");
  },
};

/** A list that no store has in this order. */
const sorted: Flood = {
  name: "sorted lists of jobs of 1 MB",
  async run(target, scale) {
    await fillNamed(target, 100 * scale);
    return repeat(target, "GET", "/admin/jobs?sort=priority&per_page=200");
  },
};

/** Attacks that make a server load many large jobs at once, although it needs little of each. */
export const NAMED_FLOODS: readonly Flood[] = [
  beats,
  reports,
  known,
  children,
  steps,
  holders,
  crons,
  sorted,
];
