/** What the tests of sandboxes share: a real engine, real processes, and a look at the process table. */

import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { onTestFinished } from "vitest";
import type { JobRow } from "../../../src/core/job/job.ts";
import {
  type Engine,
  type EngineEvent,
  type EnqueueOptions,
  type Json,
  openEngine,
  type SandboxOptions,
  sandboxed,
  type Worker,
} from "../../../src/index.ts";
import { silentLogger } from "../../../src/ports/log.ts";
import { rowOf } from "../../../src/testing/read-store.ts";
import { act } from "./act-job.ts";

export const ACT = new URL("./act.ts", import.meta.url);

/** Some systems forbid namespaces without root, for example inside most containers. */
export const hasNamespaces = spawnSync("unshare", ["--user", "--pid", "--fork", "true"]).status === 0;
if (!hasNamespaces)
  console.error(
    "SKIPPED: attacks on a strict sandbox: this system does not allow user namespaces (unshare --user --pid)",
  );

/** Acts that end by themselves. They get time for it, because a busy machine may take seconds; all others wait for their deadline. */
const ENDS =
  /^(noop|echo|parentResults|pid|environment|exit|suicide|uncaught|throwPlain|discard|snoozed|print|printAndLeave|afterPrint|exitAfterReturn|talkLater|afterTalk)$/;
/** For what happens at the soft deadline or after it, and ends by itself: a busy machine may take seconds for it. */
export const LONG_GRACE = { timeouts: { grace: "20s" } } as const satisfies EnqueueOptions;

export interface Stage {
  readonly engine: Engine;
  readonly worker: Worker;
  readonly events: EngineEvent[];
  /** Runs one act to its end, whatever that is. */
  play(name: string, argument?: Json, options?: EnqueueOptions): Promise<JobRow>;
  enqueue(name: string, argument?: Json, options?: EnqueueOptions): Promise<string>;
  ended(id: string): Promise<JobRow>;
  /** Waits for an event; one that came already counts. */
  told<Name extends EngineEvent["name"]>(
    name: Name,
    id?: string,
  ): Promise<Extract<EngineEvent, { name: Name }>>;
  lines(id: string): Promise<string[]>;
  /** Processes that carry this stage's mark, living or not yet waited for. */
  processes(): number[];
}

interface StageOptions extends SandboxOptions {
  readonly concurrency?: number;
  readonly module?: URL;
}

export async function openStage({
  concurrency = 4,
  module = ACT,
  ...options
}: StageOptions = {}): Promise<Stage> {
  const mark = randomUUID();
  process.env.CURFEW_TEST_MARK = mark;
  const engine = await openEngine({ store: "memory:", logger: silentLogger });
  const events: EngineEvent[] = [];
  const watchers = new Set<() => void>();
  void (async () => {
    for await (const event of engine.events()) {
      events.push(event);
      for (const watcher of watchers) watcher();
    }
  })();
  // Under the permission model a child may not read the cache.
  const cache = options.permissions ? [] : ["NODE_COMPILE_CACHE"];
  const env = ["CURFEW_TEST_MARK", ...cache, ...(options.env ?? [])];
  const worker = engine.work({
    queues: { default: { concurrency } },
    processors: [sandboxed(act, module, { ...options, env })],
  });
  onTestFinished(() => engine.close({ drain: "0s" }));
  const find = <Name extends EngineEvent["name"]>(name: Name, id?: string) =>
    events.find((event) => event.name === name && (id === undefined || ("id" in event && event.id === id)));
  const enqueue: Stage["enqueue"] = async (name, argument = null, more = {}) => {
    const timeouts = { ...(ENDS.test(name) && { attempt: "30s" as const }), ...more.timeouts };
    const { id } = await engine.enqueue(act, { name, argument }, { ...more, timeouts });
    return id;
  };
  const stage: Stage = {
    engine,
    worker,
    events,
    enqueue,
    play: async (...call) => stage.ended(await enqueue(...call)),
    ended: async (id) => {
      await engine
        .job(id)
        .result({ within: "4m" })
        .catch(() => {});
      return (await rowOf(engine.store, id)) as JobRow;
    },
    told: (name, id) =>
      new Promise((resolve) => {
        const look = () => {
          const found = find(name, id);
          if (!found) return;
          watchers.delete(look);
          resolve(found as never);
        };
        watchers.add(look);
        look();
      }),
    lines: async (id) => (await engine.job(id).logs({ limit: 1_000 })).lines.map(({ message }) => message),
    processes: () => processesMarked(mark),
  };
  return stage;
}

/** The reapers that a process has started; their environment is empty, so they carry no mark. */
export function reapersOf(parent: number): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => {
      try {
        const isReaper = readFileSync(`/proc/${pid}/cmdline`, "latin1").includes("reaper-process");
        return (
          isReaper &&
          readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.split(" ")[1] === String(parent)
        );
      } catch {
        return false;
      }
    });
}

/** A child inherits the mark in its environment, and so does whatever it starts. */
export function processesMarked(mark: string): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => {
      if (!Number.isInteger(pid) || pid === process.pid) return false;
      try {
        return readFileSync(`/proc/${pid}/environ`, "latin1").includes(`CURFEW_TEST_MARK=${mark}`);
      } catch {
        return false;
      }
    });
}

/** Real time: another process has no event to wait for here. */
export const sleep = (delay: number) => new Promise<void>((resolve) => setTimeout(resolve, delay));

export async function until(check: () => boolean, within = 60_000): Promise<void> {
  const from = performance.now();
  while (!check()) {
    if (performance.now() - from > within) throw new Error(`it did not happen within ${within} ms`);
    await sleep(10);
  }
}
