import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { createIdSource } from "../../../src/core/ids.ts";
import type { JobRow } from "../../../src/core/job/job.ts";
import { seededRandom } from "../../../src/core/random.ts";
import { realSystem } from "../../../src/engine/runtime/real-system.ts";
import { openEngine, silentLogger } from "../../../src/index.ts";
import { RunningCommand } from "../../server/command.ts";

export interface LoadOptions {
  readonly store: string;
  readonly clients: number;
  readonly kills: number;
  readonly seed: number;
}

export interface LoadReport {
  readonly acknowledged: number;
  /** Enqueues of which no answer came; they may exist or not. */
  readonly unanswered: number;
  readonly verdicts: number;
  /** Reports that the server refused, because the job was somebody else's by then. */
  readonly refused: number;
  readonly kills: number;
  readonly violations: readonly string[];
}

const QUEUE = "crash";
/** This many enqueues are acknowledged before each kill, however slow the machine is. */
const AT_LEAST = 50;
const SETTLE_WITHIN = 90_000;
/** Longer than the lease of a claim that a server took and could not hand out any more. */
const QUIET = 12_000;

/**
 * A server that is killed with SIGKILL again and again while clients enqueue, fetch and report. What it answered must
 * be true afterwards: a job whose enqueue was acknowledged exists, and a verdict that was acknowledged is the only one.
 */
export async function serverCrash(options: LoadOptions): Promise<LoadReport> {
  const load = new Load(options, await freePort());
  try {
    return await load.run();
  } finally {
    await load.kill();
  }
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as { port: number };
  probe.close();
  await once(probe, "close");
  return port;
}

interface Fetched {
  readonly id: string;
  readonly fence: number;
}

class Load {
  readonly #options: LoadOptions;
  readonly #port: number;
  readonly #random: () => number;
  readonly #nextId: () => string;
  #server: RunningCommand | undefined;
  readonly #acknowledged = new Set<string>();
  /** The results of acknowledged verdicts, by job. */
  readonly #verdicts = new Map<string, string[]>();
  #unanswered = 0;
  #refused = 0;
  #kills = 0;

  constructor(options: LoadOptions, port: number) {
    this.#options = options;
    this.#port = port;
    this.#random = seededRandom(options.seed);
    this.#nextId = createIdSource(() => Date.now(), realSystem.fill);
  }

  async run(): Promise<LoadReport> {
    await this.#start();
    const isOver = () => this.#kills >= this.#options.kills;
    const clients = Array.from({ length: this.#options.clients }, (_, index) =>
      this.#client(`c${index}`, isOver),
    );
    await Promise.all([...clients, this.#killAgainAndAgain(isOver)]);
    await this.#finish();
    await this.kill();
    return {
      acknowledged: this.#acknowledged.size,
      unanswered: this.#unanswered,
      verdicts: this.#verdicts.size,
      refused: this.#refused,
      kills: this.#kills,
      violations: await this.#violations(),
    };
  }

  async #start(): Promise<void> {
    const { store } = this.#options;
    this.#server = new RunningCommand(["serve", "--store", store, "--port", String(this.#port), "--json"]);
    await this.#server.said(/"listening"/);
  }

  async kill(): Promise<void> {
    this.#server?.kill("SIGKILL");
    await this.#server?.ended;
  }

  async #killAgainAndAgain(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const before = this.#acknowledged.size;
      while (this.#acknowledged.size < before + AT_LEAST) await wait(10);
      // A real pause: the point is that a process dies at any moment.
      await wait(this.#random() * 1_000);
      await this.kill();
      this.#kills += 1;
      await this.#start();
    }
  }

  /** Enqueues, fetches and reports by turns, and never trusts but what was answered. */
  async #client(worker: string, isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      await this.#enqueue();
      for (const job of await this.#fetch(worker, 2)) {
        // Now and then a client sleeps past its claim; by then the job may be somebody else's.
        if (this.#random() < 0.05) await wait(2_000);
        await this.#report(worker, job);
      }
      await wait(this.#random() * 20);
    }
  }

  async #enqueue(): Promise<void> {
    const id = this.#nextId();
    const body = {
      id,
      type: "crash.job",
      args: [id],
      options: {
        queue: QUEUE,
        visibility_timeout_ms: 1_500,
        retry: { max_attempts: 1_000, backoff_strategy: "none", initial_interval_ms: 1, jitter: false },
      },
    };
    const reply = await this.#post("/jobs", body);
    if (reply?.status === 201) this.#acknowledged.add(id);
    else this.#unanswered += 1;
  }

  async #fetch(worker: string, count: number): Promise<Fetched[]> {
    const reply = await this.#post("/workers/fetch", { queues: [QUEUE], count, worker_id: worker });
    return (reply?.body as { jobs?: Fetched[] } | undefined)?.jobs ?? [];
  }

  async #report(worker: string, { id, fence }: Fetched): Promise<void> {
    if (this.#random() < 0.1) {
      await this.#post("/workers/nack", {
        job_id: id,
        fence,
        worker_id: worker,
        error: { code: "no", message: "no" },
      });
      return;
    }
    const result = `${worker}:${fence}`;
    const reply = await this.#post("/workers/ack", { job_id: id, fence, worker_id: worker, result });
    if (reply?.status === 200) this.#verdicts.set(id, [...(this.#verdicts.get(id) ?? []), result]);
    else if (reply?.status === 409) this.#refused += 1;
  }

  /** Undefined where no whole answer came: then nothing is known. */
  async #post(path: string, body: object): Promise<{ status: number; body: unknown } | undefined> {
    try {
      const response = await fetch(`http://127.0.0.1:${this.#port}/ojs/v1${path}`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(5_000),
      });
      return { status: response.status, body: await response.json() };
    } catch {
      await wait(20);
      return undefined;
    }
  }

  /** Works until nothing comes any more. */
  async #finish(): Promise<void> {
    const endsAt = performance.now() + SETTLE_WITHIN;
    let quietSince = performance.now();
    while (performance.now() - quietSince < QUIET && performance.now() < endsAt) {
      const jobs = await this.#fetch("last", 100);
      if (jobs.length > 0) quietSince = performance.now();
      await Promise.all(jobs.map((job) => this.#report("last", job)));
      await wait(50);
    }
  }

  async #violations(): Promise<string[]> {
    await using engine = await openEngine({ store: this.#options.store, logger: silentLogger });
    const violations: string[] = [];
    const ids = [...this.#acknowledged];
    for (let from = 0; from < ids.length; from += 500) {
      const some = ids.slice(from, from + 500);
      for (const [index, row] of (await engine.store.jobs.load(some)).entries()) {
        const id = some[index] as string;
        const wrong = this.#wrong(row, this.#verdicts.get(id) ?? []);
        if (wrong) violations.push(`${id}: ${wrong}`);
      }
    }
    for (const [id, results] of this.#verdicts) {
      if (results.length > 1) violations.push(`${id}: acknowledged as completed ${results.length} times`);
    }
    return violations.slice(0, 20);
  }

  #wrong(row: JobRow | null, [result]: readonly string[]): string | undefined {
    if (row === null) return "its enqueue was acknowledged, and it is gone";
    if (row.state !== "completed") return `it is ${row.state} after attempt ${row.attempt}`;
    if (result !== undefined && row.result !== JSON.stringify(result))
      return `${result} was acknowledged, and ${row.result} is kept`;
    return undefined;
  }
}
