/**
 * A module inside a sandbox that tries to get out by calls of the kernel which Node does not offer. Perl makes them, which
 * every Debian has. Each attempt leaves the machine as it was if it succeeds, also as root.
 */
import { execFileSync } from "node:child_process";
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { get } from "node:http";
import { connect } from "node:net";
import { getPriority, setPriority } from "node:os";
import type { JobDefinition } from "../../../src/core/job/job-definition.ts";
import { processor } from "../../../src/engine/attempt/processor.ts";
import { act } from "./act-job.ts";

/** Who is attacked, as its own process sees it. */
export interface Victim {
  readonly pid: number;
  /** Where its program begins, in decimal digits. */
  readonly address: string;
}

/** Numbers of the kernel's calls. */
const CALLS: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  x64: { ptrace: 101, readMemory: 310, shmget: 29, openProcess: 434, takeFile: 438, setns: 308 },
  arm64: { ptrace: 117, readMemory: 270, shmget: 194, openProcess: 434, takeFile: 438, setns: 268 },
};
const call = (name: string) => CALLS[process.arch]?.[name] as number;

/** Answers what the program printed. A program that fails, fails the attempt. */
function perl(program: string, ...args: readonly string[]): string {
  return execFileSync("perl", ["-e", program, ...args], {
    encoding: "latin1",
    stdio: ["ignore", "pipe", "ignore"],
  });
}

/** PTRACE_SEIZE does not stop the victim, and the tracer lets go when it ends. */
const SEIZE = 0x4206;

function reachMemory({ pid, address }: Victim): Record<string, () => unknown> {
  const read = `
    my $buffer = "x" x 4;
    my $local = pack("QQ", unpack("Q", pack("p", $buffer)), 4);
    my $remote = pack("QQ", $ARGV[1], 4);
    my $count = syscall(${call("readMemory")}, $ARGV[0] + 0, $local, 1, $remote, 1, 0);
    exit 1 if $count != 4 or $buffer ne "\\x7fELF"`;
  const seize = `exit 1 if syscall(${call("ptrace")}, ${SEIZE}, $ARGV[0] + 0, 0, 0) != 0`;
  const take = `
    my $process = syscall(${call("openProcess")}, $ARGV[0] + 0, 0);
    exit 1 if $process < 0;
    exit 1 if syscall(${call("takeFile")}, $process, 0, 0) < 0`;
  return {
    ptrace: () => perl(seize, `${pid}`),
    process_vm_readv: () => perl(read, `${pid}`, address),
    pidfd_getfd: () => perl(take, `${pid}`),
    "mem for writing": () => closeSync(openSync(`/proc/${pid}/mem`, "r+")),
    "files of its namespaces": () => closeSync(openSync(`/proc/${pid}/ns/pid`, "r")),
  };
}

/** The same from a user namespace inside, where the attacker has every capability. */
function asRootInside(command: readonly string[]): unknown {
  return execFileSync("unshare", ["--user", "--map-root-user", ...command], { stdio: "ignore" });
}

function raise(): Record<string, () => unknown> {
  const more = "ulimit -n $(($(ulimit -H -n) + 1))";
  const faster = "renice -n -1 -p $$";
  return {
    "a higher priority": () => setPriority(process.pid, getPriority(process.pid) - 1),
    "a higher priority, as root inside": () => asRootInside(["sh", "-c", faster]),
    "more files": () => execFileSync("sh", ["-c", more], { stdio: "ignore" }),
    "more files, as root inside": () => asRootInside(["sh", "-c", more]),
    "another host name": () => execFileSync("sh", ["-c", 'hostname "$(hostname)"'], { stdio: "ignore" }),
  };
}

/** The names of what succeeded. */
function succeeded(ways: Record<string, () => unknown>): string[] {
  return Object.entries(ways).flatMap(([name, way]) => {
    try {
      way();
      return [name];
    } catch {
      return [];
    }
  });
}

/** Segments of System V memory with the key of the victim's, which the test has made. */
function reachSharedMemory(key: number): string[] {
  return succeeded({
    shmget: () => perl(`exit 1 if syscall(${call("shmget")}, $ARGV[0] + 0, 1, 0) < 0`, `${key}`),
  });
}

function asks(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    get(url, (response) => {
      response.resume();
      resolve(true);
    }).on("error", () => resolve(false));
  });
}

function connects(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}

const ACTS: { readonly [name: string]: (argument: never) => unknown } = {
  pid: () => process.pid,
  reach: (victim: Victim) => succeeded(reachMemory(victim)),
  raise: () => succeeded(raise()),
  reachSharedMemory,
  /** The processes that are in sight, as their command lines. */
  seen: () =>
    readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map((pid) => readFileSync(`/proc/${pid}/cmdline`, "latin1").split("\0")[0]),
  /** What it was handed besides its three streams and its pipe. Sockets and files only; Node opens events and pipes. */
  openFiles: () =>
    readdirSync("/proc/self/fd").flatMap((fd) => {
      try {
        const target = readlinkSync(`/proc/self/fd/${fd}`);
        return Number(fd) > 3 && !/^(anon_inode:|pipe:|\/dev\/null|\/proc\/)/.test(target) ? [target] : [];
      } catch {
        return [];
      }
    }),
  reachNetwork: async ({ url, path }: { url: string; path: string }) => {
    const ways = { "loopback device": () => asks(url), "abstract socket": () => connects(path) };
    const reached: string[] = [];
    for (const [name, way] of Object.entries(ways)) if (await way()) reached.push(name);
    return reached;
  },
};

export default processor(act as JobDefinition<unknown, unknown, never>, (context) => {
  const { name, argument } = context.payload as { name: string; argument: never };
  return ACTS[name]?.(argument) as never;
});
