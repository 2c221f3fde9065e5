import type { Line } from "./http-client.ts";

/** How a measurement sends its round trips: an enqueue, a fetch and an ACK of each job. */
export interface Shape {
  readonly name: string;
  readonly clients: number;
  /** Round trips that each client has under way at once, on its one connection. */
  readonly pipelined?: number;
  /** Jobs of one request; each request carries one if left out. */
  readonly batch?: number;
}

type Fetched = readonly { readonly id: string; readonly fence: number }[];

const JOB = { type: "bench.noop", args: [{ n: 1 }] };

/** Round trips until the time is up; answers how many there were. */
export async function roundTrips(line: Line, worker: string, until: number, batch = 1): Promise<number> {
  const isSingle = batch === 1;
  const enqueue = JSON.stringify(isSingle ? JOB : { jobs: new Array(batch).fill(JOB) });
  const fetch = JSON.stringify({
    queues: ["default"],
    worker_id: worker,
    count: isSingle ? undefined : batch,
  });
  let count = 0;
  while (performance.now() < until) {
    await line.post(isSingle ? "/ojs/v1/jobs" : "/ojs/v1/jobs/batch", enqueue);
    const { jobs } = JSON.parse(await line.post("/ojs/v1/workers/fetch", fetch)) as { jobs: Fetched };
    await ack(line, worker, jobs);
    // Another client may have fetched ours; then there is nothing to report, and one more to fetch for somebody.
    count += jobs.length;
  }
  return count;
}

async function ack(line: Line, worker_id: string, jobs: Fetched): Promise<void> {
  const reports = jobs.map(({ id, fence }) => ({ job_id: id, fence }));
  const [report] = reports;
  if (!report) return;
  if (reports.length === 1) await line.post("/ojs/v1/workers/ack", JSON.stringify({ ...report, worker_id }));
  else await line.post("/ojs/v1/workers/ack/batch", JSON.stringify({ worker_id, jobs: reports }));
}

/** Three requests that are answered without any work. */
export async function bareTrips(line: Line, until: number): Promise<number> {
  const body = JSON.stringify({ queues: ["default"], worker_id: "bench" });
  let count = 0;
  for (; performance.now() < until; count++) for (let nth = 0; nth < 3; nth++) await line.post("/", body);
  return count;
}
