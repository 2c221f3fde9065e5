import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { openEngine, processor, silentLogger } from "../../src/index.ts";
import { rowOf } from "../../src/testing/read-store.ts";
import { startOwnPostgres } from "../postgres.ts";
import { PACE, PLACES, paceJob, placesJob, QUEUE_PLACES, queueJob } from "./limits/jobs.ts";
import { program } from "./support/program.ts";

const WORKERS = 3;
const KILLS = 4;
/** A handler is entered at most this many milliseconds after the start that counts, and what its machine stalls it besides. */
const SHIFT = 300;

/** When a handler ran: until it ended, or its process was killed. */
interface Span {
  readonly from: number;
  readonly to: number;
}

interface Ran {
  readonly spans: ReadonlyMap<string, Span[]>;
  /** How long a worker was stalled at most. */
  readonly lag: number;
}

/** Real processes on a real store, one killed every second: gives when handlers of each type ran. */
async function runKilled(store: string): Promise<Ran> {
  const folder = await mkdtemp(join(tmpdir(), "curfew-limits-"));
  const file = join(folder, "spans");
  await writeFile(file, "");
  const engine = await openEngine({ store, logger: silentLogger });
  const script = program(new URL("./limits/worker-process.ts", import.meta.url));
  const spawn = () => fork(script, [store, file], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const diedAt = new Map<number, number>();
  const kill = async (child: ChildProcess) => {
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
    diedAt.set(child.pid as number, Date.now());
  };
  await engine.queues.configure("narrow", { concurrency: QUEUE_PLACES });
  const children = Array.from({ length: WORKERS }, spawn);
  try {
    await Promise.all(children.map((child) => once(child, "message")));
    const numbers = Array.from({ length: 60 }, (_, index) => index);
    const jobs = [
      ...(await engine.enqueueMany(placesJob, numbers)),
      ...(await engine.enqueueMany(paceJob, numbers.slice(0, 30))),
      ...(await engine.enqueueMany(queueJob, numbers)),
    ];
    for (let nth = 0; nth < KILLS; nth++) {
      // A real pause: workers are killed in the middle of what they do.
      await wait(700);
      await kill(children[nth % WORKERS] as ChildProcess);
      children[nth % WORKERS] = spawn();
    }
    await Promise.all(jobs.map((job) => job.result({ within: "4m" })));
    for (const key of ["places", "pace"])
      expect(await engine.limits.get(key)).toMatchObject({ inUse: 0, waiting: 0 });
  } finally {
    await Promise.all(children.map(kill));
    await engine.close({ drain: "0s" });
  }
  const text = await readFile(file, "utf8");
  await rm(folder, { recursive: true });
  const lags = [...text.matchAll(/^lag (\d+)$/gm)].map(([, lag]) => Number(lag));
  return { spans: spansIn(text, diedAt), lag: Math.max(0, ...lags) };
}

function spansIn(text: string, diedAt: ReadonlyMap<number, number>): Map<string, Span[]> {
  const lines = text
    .trim()
    .split("\n")
    .map((line) => line.split(" ") as [string, string, string, string, string]);
  const ends = new Map(
    lines.filter(([what]) => what === "end").map(([, at, , run, pid]) => [`${run} ${pid}`, Number(at)]),
  );
  const spans = new Map<string, Span[]>();
  for (const [what, at, type, run, pid] of lines) {
    if (what !== "begin") continue;
    const to = ends.get(`${run} ${pid}`) ?? diedAt.get(Number(pid)) ?? Number.NaN;
    spans.set(type, [...(spans.get(type) ?? []), { from: Number(at), to }]);
  }
  return spans;
}

function mostAtOnce(spans: readonly Span[] = []): number {
  return Math.max(
    ...spans.map(({ from }) => spans.filter((other) => other.from <= from && from < other.to).length),
  );
}

function mostWithin(spans: readonly Span[] = [], length: number): number {
  return Math.max(
    ...spans.map(
      ({ from }) => spans.filter((other) => other.from >= from && other.from < from + length).length,
    ),
  );
}

function expectKept({ spans, lag }: Ran): void {
  expect(mostAtOnce(spans.get("limits.places"))).toBe(PLACES);
  expect(mostAtOnce(spans.get("limits.queue"))).toBe(QUEUE_PLACES);
  expect(spans.get("limits.pace")?.length).toBeGreaterThan(PACE.limit);
  expect(mostWithin(spans.get("limits.pace"), PACE.per - SHIFT - lag)).toBeLessThanOrEqual(PACE.limit);
}

describe.concurrent("limits over processes that are killed", () => {
  it("SQLite: no bound is passed, and no place is lost", async () => {
    const folder = await mkdtemp(join(tmpdir(), "curfew-limits-db-"));
    try {
      expectKept(await runKilled(`sqlite:${join(folder, "limits.db")}`));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it("PostgreSQL: no bound is passed, and no place is lost", async () => {
    await using server = await startOwnPostgres();
    expectKept(await runKilled(server.url));
  });

  it("SQLite: a job of the caller's own transaction goes through its limitKey once that has committed", async () => {
    const folder = await mkdtemp(join(tmpdir(), "curfew-limits-tx-"));
    const file = join(folder, "limits.db");
    const engine = await openEngine({ store: `sqlite:${file}`, logger: silentLogger });
    const db = new DatabaseSync(file, { timeout: 20_000 });
    try {
      await engine.queues.configure("default", { depth: { most: 2 } });
      db.exec("begin immediate");
      const one = await engine.enqueue(placesJob, 1, { tx: db });
      await engine.enqueue(placesJob, 2, { tx: db });
      await expect(engine.enqueue(placesJob, 3, { tx: db })).rejects.toMatchObject({ code: "queue_full" });
      expect(await rowOf(engine.store, one.id)).toBeNull();
      db.exec("commit");
      engine.work({ processors: [processor(placesJob, () => {})] });
      await one.result({ within: "1m" });
    } finally {
      db.close();
      await engine.close({ drain: "0s" });
      await rm(folder, { recursive: true, force: true });
    }
  });
});
