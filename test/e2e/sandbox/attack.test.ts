/**
 * Attacks on the worker, written as processors. They run with the rights of the tests, often as root: an attack must leave
 * the machine as it was if it succeeds.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { get } from "node:http";
import { url as debuggerUrl } from "node:inspector";
import { describe, expect, it } from "vitest";
import type { JobRow } from "../../../src/core/job/job.ts";
import { sandboxed } from "../../../src/index.ts";
import { act } from "./act-job.ts";
import { hasNamespaces, openStage, reapersOf, sleep, until } from "./stage.ts";

const LISTEN = "0A";

/** The TCP ports on which a process listens. */
function portsOf(pid: number): number[] {
  const sockets = new Set<string>();
  try {
    for (const fd of readdirSync(`/proc/${pid}/fd`)) {
      const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1];
      if (inode) sockets.add(inode);
    }
  } catch {
    return [];
  }
  const rows = readFileSync("/proc/net/tcp", "latin1").trim().split("\n").slice(1);
  return rows.flatMap((row) => {
    const [, local, , state, , , , , , inode] = row.trim().split(/\s+/);
    const port = Number.parseInt(local?.split(":")[1] ?? "", 16);
    return state === LISTEN && sockets.has(inode as string) ? [port] : [];
  });
}

/** Whether it runs. A process that has ended has no open files, also if nobody has waited for it yet. */
function isAlive(pid: number): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).length > 0;
  } catch {
    return false;
  }
}

/** The status of what any local user may ask a debugger for: its secret path. */
function askForPath(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const request = get({ host: "127.0.0.1", port, path: "/json/list", agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    request.on("error", () => resolve(undefined));
  });
}

describe("8.7 the debugger", () => {
  it("of the worker is not opened by a signal from a sandbox, with or without permissions", async () => {
    for (const options of [{}, { permissions: [] }]) {
      const stage = await openStage({ concurrency: 1, ...options });
      const row = await stage.play("signal", process.pid, { timeouts: { attempt: "20s" } });
      expect(row.state).toBe("completed");
      expect(debuggerUrl()).toBeUndefined();
    }
  });

  it("of the reaper and of a sandbox with permissions is not opened by a signal", async () => {
    const stage = await openStage({ concurrency: 2, permissions: [] });
    const [reaper] = reapersOf(process.pid) as [number];
    const sandbox = Number((await stage.play("pid")).result);
    for (const pid of [reaper, sandbox]) {
      const row = await stage.play("signal", pid, { timeouts: { attempt: "20s" } });
      expect(row.state).toBe("completed");
      expect(portsOf(pid)).toEqual([]);
    }
    expect(reapersOf(process.pid)).toEqual([reaper]);
  });

  it("of a sandbox that hangs tells nobody its path, and is closed again before the kill", async () => {
    const stage = await openStage({ concurrency: 1, spare: 0 });
    const pid = Number((await stage.play("pid")).result);
    // It sleeps, so that a busy machine has time for its stack.
    const id = await stage.enqueue("atomics", null, { timeouts: { attempt: "100ms", grace: "12s" } });
    let ended: JobRow | undefined;
    void stage.ended(id).then((row) => {
      ended = row;
    });
    const statuses = new Set<number | undefined>();
    const open: boolean[] = [];
    while (!ended) {
      const ports = portsOf(pid);
      if (isAlive(pid)) open.push(ports.length > 0);
      for (const port of ports) statuses.add(await askForPath(port));
      await sleep(2);
    }
    expect(ended.errors).toMatchObject([
      { type: "timeout", forced: true, stack: expect.stringContaining("act.ts") },
    ]);
    expect(statuses).not.toContain(200);
    // The port was open at most once, and not any more at the end: how soon it closes depends on the machine.
    const opened = open.filter((isOpen, i) => isOpen && !open[i - 1]);
    expect(opened.length).toBeLessThanOrEqual(1);
    expect(open.at(-1)).toBe(false);
  });
});

describe("8.6 the pipe", () => {
  it("a sandbox that asks and never reads is ended before it fills the memory of its worker", async () => {
    const stage = await openStage({ concurrency: 1 });
    const row = await stage.play("neverRead", null, { timeouts: { attempt: "40s" } });
    expect(row.errors).toMatchObject([
      { type: "killed", message: expect.stringContaining("leaving more than 4 MB of messages unread") },
    ]);
  });

  it("a message that is nested too deeply ends the sandbox before it is parsed", async () => {
    const stage = await openStage({ concurrency: 1 });
    const row = await stage.play("nestDeeply", null, { timeouts: { attempt: "20s" } });
    expect(row.errors).toMatchObject([
      { type: "killed", message: expect.stringContaining("a message with more than 100 levels") },
    ]);
  });

  it("a handler whose checkpoint is nested too deeply is refused where it calls", async () => {
    const stage = await openStage({ concurrency: 1 });
    const row = await stage.play("nestTooDeeply", null, { timeouts: { attempt: "20s" } });
    expect(JSON.parse(row.result ?? "")).toMatch(/^checkpoint: .* more than 100 levels/);
  });
});

describe("8.7 other processes", () => {
  const LONG = { timeouts: { attempt: "20s" as const } };

  it("are within reach of a plain sandbox, as the guide says", async () => {
    const stage = await openStage({ concurrency: 1 });
    const row = await stage.play("reachProcess", process.pid, LONG);
    expect(JSON.parse(row.result ?? "")).toContain("environ");
  });

  it("can be signalled under the permission model, not read", async () => {
    const stage = await openStage({ concurrency: 1, permissions: [] });
    const row = await stage.play("reachProcess", process.pid, LONG);
    expect(JSON.parse(row.result ?? "")).toEqual(["signal 0", "signal SIGUSR1"]);
  });

  it.skipIf(!hasNamespaces)("do not exist for a strict sandbox", async () => {
    for (const options of [{}, { permissions: [] }]) {
      const stage = await openStage({ concurrency: 1, isolation: "strict", ...options });
      const row = await stage.play("reachProcess", process.pid, LONG);
      expect(JSON.parse(row.result ?? "null")).toEqual([]);
    }
    const stage = await openStage({ concurrency: 1, isolation: "strict" });
    expect((await stage.play("uncoverProc", process.pid, LONG)).result).toBe('"refused"');
  });
});

describe("8.7 a strict sandbox", () => {
  it.skipIf(!hasNamespaces)(
    "says where it hung, and is gone with all that it started, even what left its group",
    async () => {
      const stage = await openStage({ concurrency: 1, spare: 0, isolation: "strict" });
      // The stack is read during the grace; a busy machine needs some of it.
      const row = await stage.play("atomics", null, { timeouts: { grace: "8s" } });
      expect(row.errors).toMatchObject([{ type: "timeout", forced: true }]);
      expect(row.errors?.[0]?.stack).toMatch(/^It hung here:[\s\S]*act\.ts/);
      await stage.play("leaveGroup");
      await until(() => stage.processes().length === 0);
      await expect.poll(() => stage.processes()).toEqual([]);
    },
  );

  it.skipIf(!hasNamespaces)("is limited in memory, and its end has its cause", async () => {
    const stage = await openStage({ concurrency: 1, memory: "128mb", isolation: "strict" });
    const row = await stage.play("outOfBuffers", null, { timeouts: { attempt: "30s" } });
    expect(row.errors).toMatchObject([{ type: "killed", message: expect.stringContaining("out of memory") }]);
    const exited = await stage.play("exit", 7, { timeouts: { attempt: "30s" } });
    expect(exited.errors).toMatchObject([{ details: { exitCode: 7 } }]);
  });

  it.skipIf(!hasNamespaces)(
    "that starts processes without end is gone with all of them at its deadline",
    async () => {
      const stage = await openStage({ concurrency: 1, spare: 0, isolation: "strict" });
      const row = await stage.play("forkBomb", null, { timeouts: { attempt: "2s", grace: "0s" } });
      expect(row.errors).toMatchObject([{ type: "timeout", forced: true }]);
      await until(() => stage.processes().length === 0);
      await expect.poll(() => stage.processes()).toEqual([]);
    },
  );

  it.skipIf(!hasNamespaces)("that signals everything, or uses up its files, harms only itself", async () => {
    const stage = await openStage({ concurrency: 1, isolation: "strict" });
    const long = { timeouts: { attempt: "20s" as const } };
    expect((await stage.play("killAll", null, long)).result).toBe('"alive"');
    expect((await stage.play("useUpFiles", null, long)).result).toBe('"EMFILE"');
    expect((await stage.play("echo", 7, long)).result).toBe("7");
  });

  it("is refused at once where the system cannot keep it", () => {
    const module = new URL("./act.ts", import.meta.url);
    expect(() => sandboxed(act, module, { kind: "thread", isolation: "strict" })).toThrow(
      /sandbox\.isolation: "strict" .*a thread is part of its worker/,
    );
    expect(() => sandboxed(act, module, { isolation: "none" as never })).toThrow(/write "plain" or "strict"/);
  });
});
