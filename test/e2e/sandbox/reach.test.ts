/** Attacks on the system around a strict sandbox. Each of them also runs in a plain one, where it has to succeed. */
import { execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Json } from "../../../src/index.ts";
import type { Victim } from "./act-reach.ts";
import { hasNamespaces, openStage, type Stage } from "./stage.ts";

const MODULE = new URL("./act-reach.ts", import.meta.url);
const LONG = { timeouts: { attempt: "60s" as const } };

const hasPerl = spawnSync("perl", ["-e", "exit 0"]).status === 0 && ["x64", "arm64"].includes(process.arch);
if (!hasPerl)
  console.error("SKIPPED: attacks on a strict sandbox by calls of the kernel need Perl on x64 or arm64");

/** Whether the system lets a process trace others of its user. Yama allows it for children only, unless it is root. */
function canTrace(): boolean {
  try {
    return (
      process.getuid?.() === 0 || readFileSync("/proc/sys/kernel/yama/ptrace_scope", "utf8").trim() === "0"
    );
  } catch {
    return true;
  }
}

const MEMORY = ["ptrace", "process_vm_readv", "pidfd_getfd", "mem for writing"];
const NAMESPACES = "files of its namespaces";

/** A process as an attacker knows it, who was told where its program begins. */
function victimOf(pid: number): Victim {
  const [from = ""] = readFileSync(`/proc/${pid}/maps`, "latin1").split("-");
  return { pid, address: BigInt(`0x${from}`).toString() };
}

const openReach = (isolation: "plain" | "strict", concurrency = 1) =>
  openStage({ concurrency, spare: 0, isolation, module: MODULE });

async function answer(stage: Stage, name: string, argument: Json = null): Promise<Json> {
  const row = await stage.play(name, argument, LONG);
  expect(row.errors).toBeNull();
  return JSON.parse(row.result ?? "null");
}

const asJson = (victim: Victim) => ({ ...victim });

async function listening(server: Server, at: number | string): Promise<Server> {
  onTestFinished(() => void server.close());
  if (typeof at === "number") server.listen(at, "127.0.0.1");
  else server.listen(at);
  await once(server, "listening");
  return server;
}

describe.skipIf(!hasPerl)("8.7 the memory of another process", () => {
  it("is within reach of a plain sandbox, if the system allows it", async () => {
    const stage = await openReach("plain");
    const reached = await answer(stage, "reach", asJson(victimOf(process.pid)));
    expect(reached).toEqual(canTrace() ? [...MEMORY, NAMESPACES] : [NAMESPACES]);
  });

  it.skipIf(!hasNamespaces)(
    "is out of reach of a strict one: its worker's, and that of a sandbox beside it",
    async () => {
      const [stage, beside] = [await openReach("strict"), await openReach("strict")];
      expect(await answer(beside, "pid")).toBe(1);
      const pids = [process.pid, process.ppid, ...beside.processes()];
      // The program that starts a sandbox, and the sandbox.
      expect(pids.length).toBeGreaterThanOrEqual(4);
      for (const pid of pids) expect(await answer(stage, "reach", asJson(victimOf(pid)))).toEqual([]);
      expect(await answer(stage, "seen")).toEqual([process.execPath]);
    },
  );

  it.skipIf(!hasNamespaces)("is not shared with a strict one by System V either", async () => {
    const key = process.pid;
    const made = execFileSync("perl", ["-e", "print shmget($ARGV[0], 1, 01600) // die $!", String(key)], {
      encoding: "latin1",
    });
    onTestFinished(() => void spawnSync("ipcrm", ["-m", made]));
    expect(await answer(await openReach("plain"), "reachSharedMemory", key)).toEqual(["shmget"]);
    expect(await answer(await openReach("strict"), "reachSharedMemory", key)).toEqual([]);
  });
});

describe("8.7 what a sandbox was given", () => {
  it("is no open file of its worker", async () => {
    const held = await listening(createServer(), 0);
    expect(held.listening).toBe(true);
    for (const isolation of hasNamespaces ? (["plain", "strict"] as const) : (["plain"] as const))
      expect(await answer(await openReach(isolation), "openFiles")).toEqual([]);
  });

  it.skipIf(!hasNamespaces)("cannot be raised by a strict one", async () => {
    if (process.getuid?.() === 0)
      expect(await answer(await openReach("plain"), "raise")).toContain("a higher priority");
    expect(await answer(await openReach("strict"), "raise")).toEqual([]);
  });
});

describe("8.7 the network", () => {
  it("of the machine is that of every sandbox, as the guide says: addresses and abstract sockets", async () => {
    const http = createHttpServer((_, response) => void response.end("inside"));
    const { port } = (await listening(http, 0)).address() as AddressInfo;
    const path = `\0curfew-test-${process.pid}`;
    await listening(createServer(), path);
    const argument = { url: `http://127.0.0.1:${port}/`, path };
    const reached = ["loopback device", "abstract socket"];
    for (const isolation of hasNamespaces ? (["plain", "strict"] as const) : (["plain"] as const))
      expect(await answer(await openReach(isolation), "reachNetwork", argument)).toEqual(reached);
  });
});
