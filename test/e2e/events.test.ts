import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, inject, it } from "vitest";
import { type JournalEvent, openEngine, silentLogger } from "../../src/index.ts";
import { createDatabase } from "../postgres.ts";
import { crashJob } from "./crash/jobs.ts";
import { program } from "./support/program.ts";

const JOBS = 40;

/** What one process commits, another one follows; the worker's process was never told to record anything. */
async function followed(
  store: string,
  folder: string,
): Promise<{ events: JournalEvent[]; delays: number[] }> {
  await using engine = await openEngine({ store, logger: silentLogger, events: "durable" });
  const entries = join(folder, "entries");
  await writeFile(entries, "");
  const script = program(new URL("./crash/worker-process.ts", import.meta.url));
  const child: ChildProcess = fork(script, [store, entries], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  try {
    await once(child, "message");
    // The answer to a follow without a cursor may come after the first commit.
    const { cursor: after } = await engine.journal.latest({ limit: 1 });
    const types = ["job.enqueued", "job.started", "job.completed"] as const;
    const following = engine.journal.follow({ types, after });
    const events: JournalEvent[] = [];
    const delays: number[] = [];
    const produced = (async () => {
      // A second attempt would have a second start.
      const options = { timeouts: { attempt: "2m" } } as const;
      for (let n = 0; n < JOBS; n++)
        await engine.enqueue(crashJob, { n, behaviour: "quick", takes: 0 }, options);
    })();
    for await (const event of following) {
      events.push(event);
      if (event.name !== "job.completed") continue;
      delays.push(engine.now() - event.at);
      if (delays.length === JOBS) break;
    }
    await produced;
    return { events, delays };
  } finally {
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }
}

function expectAll({ events, delays }: Awaited<ReturnType<typeof followed>>): void {
  const ofJob = Map.groupBy(events, ({ job }) => job);
  expect(ofJob.size).toBe(JOBS);
  for (const told of ofJob.values())
    expect(told.map(({ name }) => name)).toEqual(["job.enqueued", "job.started", "job.completed"]);
  expect(delays).toHaveLength(JOBS);
  // A busy machine may be slow, and the bench measures it: this finds events that nobody asks for.
  expect(delays.toSorted((a, b) => a - b)[JOBS / 2]).toBeLessThan(20_000);
}

describe("events of another process", () => {
  it("SQLite: events of another process are followed in order and soon", async () => {
    const folder = await mkdtemp(join(tmpdir(), "curfew-events-"));
    try {
      expectAll(await followed(`sqlite:${join(folder, "jobs.db")}`, folder));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it("PostgreSQL: events of another process are followed in order and soon", async () => {
    const folder = await mkdtemp(join(tmpdir(), "curfew-events-"));
    await using database = await createDatabase(inject("postgresUrl"));
    try {
      expectAll(await followed(database.url, folder));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});
