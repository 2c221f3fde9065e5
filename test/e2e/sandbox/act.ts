/** The module inside the sandboxes of the tests. */
import { execFile, execFileSync, spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { Socket } from "node:net";
import type { JobDefinition } from "../../../src/core/job/job-definition.ts";
import { Discard, snooze } from "../../../src/core/job/reasons.ts";
import type { Json } from "../../../src/core/schema.ts";
import { type AttemptContext, processor } from "../../../src/engine/attempt/processor.ts";
import { act } from "./act-job.ts";

type Context = AttemptContext<unknown>;

const wait = (delay: number) => new Promise<void>((resolve) => setTimeout(resolve, delay));

function spin(): never {
  for (let turns = 0; ; turns++) if (turns < 0) throw new Error("never");
}

/** Writes all of it to the pipe of the sandbox, past curfew and without ever reading. */
function write(text: string): void {
  let rest = Buffer.from(text);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(3, rest));
    } catch {
      // The pipe is full.
    }
  }
}

/** The key of the running attempt, read from a message of curfew. */
function stealKey(beat: () => void): string {
  const { write: real } = Socket.prototype;
  let key = "";
  Socket.prototype.write = ((text: string) => {
    key = JSON.parse(text).key;
    return true;
  }) as typeof real;
  beat();
  Socket.prototype.write = real;
  return key;
}

/** An enqueue that is refused: the answer is longer than the question. */
function question(key: string, number: number): string {
  const report = { say: "enqueue", key, number, definition: { type: "" }, payload: "1", options: {} };
  return `${JSON.stringify(report)}\n`;
}

let talk: (() => void) | undefined;

const ACTS: { readonly [name: string]: (context: Context, argument: never) => unknown } = {
  noop: () => undefined,
  echo: (_, argument) => argument,
  parentResults: ({ parentResults }) => parentResults,
  pid: () => process.pid,
  environment: () => ({ ...process.env }),
  loop: () => spin(),
  logAndLoop: ({ log, progress }) => {
    progress(0.5, "half");
    log("about to hang");
    spin();
  },
  checkpointAndLoop: async ({ checkpoint, lastCheckpoint }) => {
    if (lastCheckpoint === "half") return "resumed";
    await checkpoint("half");
    return spin();
  },
  atomics: () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0),
  exec: () => execFileSync("sleep", ["60"]),
  execFor: (_, seconds) => execFileSync("sleep", [String(seconds)]),
  ignoreSigterm: () => {
    process.on("SIGTERM", () => {});
    return spin();
  },
  hang: () => new Promise(() => setInterval(() => {}, 1_000)),
  cleanupHangs: ({ onCleanup }) => {
    onCleanup(() => spin());
    return new Promise(() => {});
  },
  cleanupRuns: ({ onCleanup, signal, log, checkpoint }) => {
    onCleanup(async () => {
      log("cleaning up");
      await checkpoint("cleaned");
    });
    return new Promise((_, reject) => {
      signal.addEventListener("abort", () => setTimeout(() => reject(signal.reason), 50));
    });
  },
  reason: ({ signal }) =>
    new Promise((resolve) => {
      signal.addEventListener("abort", () => {
        const { name, kind, limit } = signal.reason;
        resolve({ name, kind, limit, isError: signal.reason instanceof Error });
      });
    }),
  grandchild: ({ log }) => {
    const child = spawn("sleep", ["60"], { stdio: "ignore" });
    log(`grandchild ${child.pid}`);
    return spin();
  },
  leaveGroup: () => {
    spawn("sleep", ["60"], { stdio: "ignore", detached: true }).unref();
    return spin();
  },
  exit: (_, code) => process.exit(code),
  suicide: () => process.kill(process.pid, "SIGKILL"),
  uncaught: () => {
    setTimeout(() => {
      throw Object.assign(new TypeError("nobody caught this"), { code: "E_UNCAUGHT" });
    }, 1);
    return new Promise(() => {});
  },
  throwPlain: () => {
    throw Object.assign(new RangeError("too far", { cause: new Error("because") }), {
      code: "E_FAR",
      far: 7,
    });
  },
  discard: () => {
    throw new Discard("no use");
  },
  snoozed: ({ attempt, meta }) => (meta.done || attempt > 1 ? "never" : snooze({ after: "1h" })),
  outOfHeap: () => {
    const kept: unknown[] = [];
    for (;;) kept.push(new Array(10_000).fill({ a: 1 }));
  },
  outOfBuffers: async () => {
    const kept: Buffer[] = [];
    for (;;) {
      kept.push(Buffer.alloc(8_000_000, 1));
      await wait(1);
    }
  },
  outOfChildMemory: async () => {
    const code = "const kept = []; setInterval(() => kept.push(Buffer.alloc(8e6, 1)), 5)";
    const [file, ...args] = ["sh", "-c", '"$0" -e "$1"; true', process.execPath, code] as const;
    execFile(file, args);
    await wait(60_000);
  },
  forkBomb: () => {
    for (let nth = 0; nth < 40; nth++)
      spawn("sh", ["-c", "sleep 60 & (sleep 60 &) & setsid sleep 60"], {
        stdio: "ignore",
        detached: true,
      }).unref();
    return spin();
  },
  useUpFiles: () => {
    const files: number[] = [];
    try {
      for (;;) files.push(openSync("/dev/null", "r"));
    } catch (error) {
      for (const file of files) closeSync(file);
      return (error as NodeJS.ErrnoException).code;
    }
  },
  killAll: async () => {
    for (const pid of [-1, 0, 1]) {
      for (const signal of ["SIGSTOP", "SIGKILL"] as const) {
        try {
          if (pid === -1 || signal === "SIGSTOP") process.kill(pid, signal);
        } catch {
          // It has no right to.
        }
      }
    }
    await wait(100);
    return "alive";
  },
  print: () => {
    process.stdout.write("to stdout\n");
    process.stderr.write("to stderr\n");
    return wait(50);
  },
  flood: async () => {
    for (let line = 0; line < 5_000; line++) process.stdout.write(`line ${line}\n`);
    await wait(50);
  },
  malformed: async () => {
    writeSync(3, "this is no message\n");
    await wait(10_000);
  },
  closePipe: async () => {
    closeSync(3);
    await wait(10_000);
  },
  oversized: async ({ log }) => {
    log("x", { text: "y" });
    for (let part = 0; part < 6; part++) writeSync(3, "z".repeat(65_000));
    for (;;) {
      try {
        writeSync(3, "z".repeat(65_000));
      } catch {
        await wait(1);
      }
    }
  },
  exitAfterReturn: () => {
    // After the result is written, and before another job can be read.
    setImmediate(() => process.exit(3));
    return "done";
  },
  talkLater: ({ progress, log, beat, checkpoint }) => {
    talk = () => {
      progress(0.99, "late talk");
      log("late talk");
      beat();
      void checkpoint("late talk").catch(() => {});
    };
    return process.pid;
  },
  printAndLeave: (_, text) => {
    console.log(text);
    process.stdout.write(`${text}, without an end`);
    console.error("to stderr");
    setTimeout(() => console.log("too late"), 20);
    return process.pid;
  },
  afterPrint: async () => {
    await wait(60);
    console.log("from the second");
    return process.pid;
  },
  printAndLoop: () => {
    console.log("printed before it hung");
    spin();
  },
  logTooMuch: ({ log, progress, checkpoint }) => {
    const refused: string[] = [];
    for (const say of [
      () => log("x", { text: "y".repeat(20_000) }),
      () => progress(0.5, "y".repeat(2_000_000)),
      () => log("x", { at: new Date() as never }),
    ]) {
      try {
        say();
      } catch (error) {
        refused.push((error as { code: string }).code);
      }
    }
    return checkpoint("y".repeat(2_000_000)).catch((error) => [...refused, error.code]);
  },
  untilExtended: async (context) => {
    const before = { deadline: context.deadline, remaining: context.remaining() };
    context.progress(0.1);
    while (context.deadline === before.deadline) await wait(5);
    const after = { deadline: context.deadline, remaining: context.remaining() };
    await wait(before.remaining + 100);
    return { before, after, isAborted: context.signal.aborted };
  },
  reportFlood: ({ progress, beat, log }, count: never) => {
    for (let nth = 1; nth <= (count as number); nth++) {
      progress(nth / (count as number), nth);
      beat();
      log(`line ${nth}`);
    }
    return "done";
  },
  afterTalk: async () => {
    talk?.();
    await wait(50);
    return process.pid;
  },
  quiet: (_, delay) => wait(delay),
  blockFor: (_, delay) => {
    const until = performance.now() + delay;
    while (performance.now() < until);
  },
  failToBeStopped: ({ signal }) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  sleepUntil: async ({ remaining }, offset: never) => {
    await wait(Math.max(0, remaining() + (offset as number)));
    return "ended";
  },
  signal: async (_, pid) => {
    process.kill(pid, "SIGUSR1");
    await wait(300);
  },
  neverRead: ({ beat }) => {
    const key = stealKey(beat);
    for (let number = 0; ; number++) write(question(key, number));
  },
  nestDeeply: async ({ beat }) => {
    const state = "[".repeat(1_900_000) + "]".repeat(1_900_000);
    const message = `{"say":"checkpoint","key":"${stealKey(beat)}","number":0,"state":${state}}\n`;
    write(message);
    await wait(10_000);
  },
  nestTooDeeply: async ({ checkpoint }) => {
    let state: Json = 1;
    for (let level = 0; level < 200; level++) state = [state];
    return checkpoint(state).catch((error) => error.message);
  },
  /**
   * Every way to reach another process that needs no program to be installed, and one that needs `unshare`. Each leaves
   * the machine as it was if it succeeds, also as root: what is unmounted is so in a namespace of its own only.
   */
  reachProcess: (_, pid) => {
    const reached: string[] = [];
    const attempt = (name: string, way: () => unknown) => {
      try {
        way();
        reached.push(name);
      } catch {
        // It was refused, as it should be.
      }
    };
    for (const file of ["environ", "cmdline", "maps", "mem"])
      attempt(file, () => readFileSync(`/proc/${pid}/${file}`).at(0));
    for (const folder of ["fd", "root"]) attempt(folder, () => readdirSync(`/proc/${pid}/${folder}`));
    for (const signal of [0, "SIGUSR1"] as const)
      attempt(`signal ${signal}`, () => process.kill(pid, signal));
    const uncovered = `umount -l /proc && cat /proc/${pid}/environ`;
    attempt("unshare", () =>
      execFileSync("unshare", ["--user", "--map-root-user", "--mount", "sh", "-c", uncovered], {
        stdio: "ignore",
      }),
    );
    return reached;
  },
  /** Only in namespaces of its own: elsewhere it would unmount the machine's. */
  uncoverProc: (_, pid) => {
    if (process.pid !== 1) return "not in a namespace";
    try {
      execFileSync("umount", ["-l", "/proc"], { stdio: "ignore" });
    } catch {
      return "refused";
    }
    return existsSync(`/proc/${pid}/environ`) ? "uncovered" : "unmounted";
  },
  readSecret: async () => (await import("node:fs/promises")).readFile("/etc/passwd", "utf8"),
};

export default processor(act as JobDefinition<unknown, unknown, never>, (context) => {
  const { name, argument } = context.payload as { name: string; argument: never };
  return ACTS[name]?.(context, argument) as never;
});
