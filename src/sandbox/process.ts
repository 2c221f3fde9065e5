import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { setPriority } from "node:os";
import type { Duplex, Readable } from "node:stream";
import type { System } from "../ports/system.ts";
import {
  type Carrier,
  type CarrierEvents,
  type CarrierOptions,
  type Exit,
  environmentOf,
} from "./carrier.ts";
import { LineReader } from "./line-reader.ts";
import { childOf, memoryOf, type Silence, silenceOf } from "./proc.ts";
import { decodeError, FrameReader, type Order, parseReport } from "./protocol.ts";
import { entryOf, NO_DEBUGGER, reaper } from "./reaper.ts";
import { captureStack, type Look } from "./stack.ts";

const PIPE = 3;
/**
 * How long the last reports of a dead child are read, in milliseconds. A grandchild may keep the pipe open for
 * longer.
 */
const LAST_WORDS = 100;
/**
 * The exit of a process follows the end of its pipe within this time, in milliseconds. A process without a pipe is
 * useless.
 */
const EXIT_FOLLOWS = 1_000;
const DEBUGGER_LINE =
  /^Debugger (listening on |attached\.|ending on )|^For help, see: https:\/\/nodejs\.org\/|^Waiting for the debugger/;
/**
 * A free port of this machine, and a random path that only stderr names. Without the second flag the debugger would
 * tell the path to every local user who asks the port for it.
 */
const SECRET_DEBUGGER = ["--inspect-port=127.0.0.1:0", "--inspect-publish-uid=stderr"];
/** The line comes from untrusted code. It may name only a port of this machine. */
const DEBUGGER_URL = /^Debugger listening on (ws:\/\/127\.0\.0\.1:\d+\/\S+)/;
/**
 * Sandboxes have a lower priority than the worker, which has to end them. All sandboxes are equal: a killed process
 * needs CPU time to die, and one that loads must not delay it.
 */
const NICE = 5;
const NICE_AGAIN = 120;
const NICE_TRIES = 20;
const FEW_LINES = 50;
/**
 * The most bytes that wait for a child to read them, besides the last message. A child of curfew that is busy leaves at
 * most 100 answers unread, see `child-questions.ts`. One that asks and never reads would fill the memory of its worker.
 */
const MOST_UNREAD = 4_000_000;

/** A child process that leads its own process group, so that one signal ends it and everything that it started. */
export class ProcessCarrier implements Carrier {
  readonly #system: System;
  readonly #events: CarrierEvents;
  readonly #options: CarrierOptions;
  readonly #child: ChildProcess;
  readonly #pipe: Duplex | undefined;
  #exit: Omit<Exit, "isHeardOut"> | undefined;
  #crash: { readonly error: unknown } | undefined;
  /** The process that the command has started. */
  #started: number | undefined;
  #hasExited = false;
  #isPipeOver = false;
  #onDebugger: ((url: string) => void) | undefined;
  /** The address of its open debugger, or of one that is about to open. */
  #debugger: Promise<string> | undefined;

  constructor(system: System, options: CarrierOptions, events: CarrierEvents) {
    this.#system = system;
    this.#options = options;
    this.#events = events;
    const flags = [
      ...(options.captures ? SECRET_DEBUGGER : NO_DEBUGGER),
      `--max-old-space-size=${options.memory}`,
      "--enable-source-maps",
      ...options.flags,
    ];
    const [file, ...args] = [...options.command, process.execPath, ...flags, entryOf("child")] as [string];
    this.#child = spawn(file, args, {
      stdio: ["ignore", "pipe", "pipe", "pipe"],
      detached: process.platform !== "win32",
      windowsHide: true,
      env: environmentOf(options.env),
    });
    this.#child.on("error", (error) => this.#exited({ code: null, signal: null, error }));
    this.#child.on("exit", (code, signal) => this.#exited({ code, signal }));
    const { pid } = this.#child;
    // If no process could be started, the error event follows, and there may be no streams.
    if (pid === undefined) return;
    reaper.add(pid);
    this.#lowerPriority();
    this.#pipe = this.#child.stdio[PIPE] as Duplex;
    this.#listen(this.#pipe);
    this.#readLines("stdout", this.#child.stdout as Readable);
    this.#readLines("stderr", this.#child.stderr as Readable);
    // A sandbox does not keep the process of its worker alive. A running attempt does.
    this.#child.unref();
    for (const stream of this.#child.stdio) (stream as { unref?: () => void } | null)?.unref?.();
  }

  /**
   * Linux may divide CPU time between sessions first, and each sandbox is one. Then the niceness of the process has
   * no effect, so that of the session is set too. Without root, Linux accepts one such change per 100 ms.
   */
  #lowerPriority(tries = NICE_TRIES): void {
    if (this.#exit) return;
    const pid = this.#node;
    try {
      if (pid === undefined) throw Object.assign(new Error("not started yet"), { code: "EAGAIN" });
      setPriority(pid, NICE);
      if (process.platform === "linux") writeFileSync(`/proc/${pid}/autogroup`, String(NICE));
    } catch (error) {
      // Not every system has priorities, and the process may already be gone.
      const isTooSoon = (error as NodeJS.ErrnoException).code === "EAGAIN" && tries > 0;
      if (isTooSoon) this.#system.after(NICE_AGAIN, () => this.#lowerPriority(tries - 1));
    }
  }

  /** The process of Node: the child, or the one that the child has started. */
  get #node(): number | undefined {
    const { pid } = this.#child;
    if (this.#options.command.length === 0 || pid === undefined) return pid;
    this.#started ??= childOf(pid);
    return this.#started;
  }

  #listen(pipe: Duplex): void {
    const frames = new FrameReader();
    pipe.on("data", (chunk: Buffer) => {
      try {
        let count = 0;
        for (const line of frames.push(chunk)) {
          this.#hear(line);
          count += 1;
        }
        // Read a busy child one chunk per turn of the event loop, so that other children are read too.
        if (count > FEW_LINES) {
          pipe.pause();
          this.#system.soon(() => pipe.resume());
        }
      } catch (error) {
        pipe.removeAllListeners("data");
        pipe.resume();
        this.#events.onFlaw((error as Error).message);
      }
    });
    pipe.on("error", () => {});
    pipe.on("close", () => {
      this.#isPipeOver = true;
      this.#events.onExiting();
      if (this.#exit) this.#emitExit();
      else this.#system.after(EXIT_FOLLOWS, () => this.#exit || this.#events.onFlaw("closing its pipe"));
    });
  }

  #hear(line: string): void {
    const report = parseReport(line);
    // A module may handle the uncaught error and continue. Then its end has another cause.
    this.#crash = report.say === "crashed" ? { error: decodeError(report.error) } : undefined;
    if (report.say !== "crashed") this.#events.onReport(report);
  }

  #exited(exit: Omit<Exit, "isHeardOut">): void {
    this.#exit ??= exit;
    this.#events.onExiting();
    const { pid } = this.#child;
    if (pid !== undefined) {
      // Ends the other members of its group.
      killGroup(pid);
      reaper.delete(pid);
    }
    if (this.#isPipeOver || pid === undefined) this.#emitExit();
    else this.#system.after(LAST_WORDS, () => this.#emitExit());
  }

  #emitExit(): void {
    if (this.#hasExited) return;
    this.#hasExited = true;
    for (const stream of this.#child.stdio ?? []) stream?.destroy();
    this.#events.onExit({ ...(this.#exit as Exit), ...this.#crash, isHeardOut: this.#isPipeOver });
  }

  #readLines(name: "stdout" | "stderr", stream: Readable): void {
    const lines = new LineReader((line) => {
      if (name === "stderr" && DEBUGGER_LINE.test(line)) {
        const url = DEBUGGER_URL.exec(line)?.[1];
        if (url) this.#debuggerOpened(url);
      } else this.#events.onLine(name, line);
    });
    stream.setEncoding("utf8");
    stream.on("data", (text: string) => lines.push(text));
    stream.on("end", () => lines.flush());
    stream.on("error", () => {});
  }

  send(order: Order): void {
    if (!this.#pipe?.writable) return;
    if (this.#pipe.writableLength > MOST_UNREAD) {
      this.#pipe.destroy();
      this.#events.onFlaw(`leaving more than ${MOST_UNREAD / 1e6} MB of messages unread`);
    } else this.#pipe.write(`${JSON.stringify(order)}\n`);
  }

  kill(): void {
    const { pid } = this.#child;
    if (pid === undefined || this.#exit) return;
    if (!killGroup(pid)) this.#child.kill("SIGKILL");
  }

  memory(): number | undefined {
    const pid = this.#node;
    return pid === undefined ? undefined : memoryOf(pid);
  }

  async capture(limit: number): Promise<Look> {
    const { captures } = this.#options;
    if (!captures || this.#node === undefined) return { because: "capture is turned off" };
    if (process.platform === "win32") return { because: "this system has no SIGUSR1" };
    const open = () => {
      this.#debugger ??= this.#openDebugger();
      return this.#debugger;
    };
    const look = await captureStack({ system: this.#system, limit, open });
    // An answer closes the debugger. The next look opens it again, under another address.
    if ("stack" in look) this.#debugger = undefined;
    return "stack" in look ? look : { because: `${look.because}; ${this.silence().says}` };
  }

  silence(): Silence {
    return silenceOf(this.#node);
  }

  /** Node may open it a second time, when the event loop that was blocked runs again. */
  #debuggerOpened(url: string): void {
    this.#debugger = Promise.resolve(url);
    this.#onDebugger?.(url);
  }

  #openDebugger(): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#onDebugger = resolve;
      if (!signalDebugger(this.#node)) reject(new Error("the process is gone"));
    });
  }
}

function signalDebugger(pid: number | undefined): boolean {
  try {
    return pid !== undefined && process.kill(pid, "SIGUSR1");
  } catch {
    return false;
  }
}

function killGroup(pid: number): boolean {
  try {
    process.kill(-pid, "SIGKILL");
    return true;
  } catch {
    return false;
  }
}
