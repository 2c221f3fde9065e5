import { connect, type Socket } from "node:net";
import type { System } from "../ports/system.ts";
import { encodeFrame, FrameDecoder } from "./websocket.ts";

/** Where code hangs, or why that is unknown. */
export type Look = { readonly stack: string } | { readonly because: string };

export function lookText(look: Look): string {
  return "stack" in look ? look.stack : `(no stack: ${look.because})`;
}

interface CaptureOptions {
  readonly system: System;
  /** Milliseconds. What is unknown by then stays unknown. */
  readonly limit: number;
  /** Makes the process open its debugger. Returns the address that it prints. */
  readonly open: () => Promise<string>;
}

const LONGEST_STACK = 8_000;
/**
 * Runs between two steps of the running code, on top of its stack. Positions are mapped to the sources in the child.
 */
export const ASK = "(() => { Error.stackTraceLimit = 30; return new Error().stack; })()";
const ACCEPTED = /^HTTP\/1\.1 101 [\s\S]*\r\n\r\n$/;
/** Closes the port. Waits inside the process until this connection has ended, which is at once. */
const CLOSE = "process._debugEnd()";
/**
 * Node emits an event when its debugger opens, in the middle of the code that hangs. That code did not call it. Tracing
 * agents and test runners wrap `process.emit`, so there may be several such frames, in any file.
 */
const EMIT_FRAME = /^\s+at process\.(emit|\S+ \[as emit\]) \(/;
/** The frames of this expression itself. */
const OWN_FRAME = /^\s+at (\S+ \()?<anonymous>:\d+:\d+\)?$/;

/**
 * The JavaScript stack of a process whose event loop is blocked, read from outside. Node runs its debugger on a
 * separate thread and opens it at SIGUSR1. V8 answers in the middle of a loop without a pause, but not inside a
 * native call. The port is closed again after the answer.
 */
export async function captureStack({ system, limit, open }: CaptureOptions): Promise<Look> {
  const question = new Question();
  let timer: { cancel(): void } | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = system.after(limit, () => reject(new Error(`${question.waitsFor} within ${limit} ms`)));
  });
  try {
    const asked = question.ask(open);
    // The loser of the race may still reject, long after.
    asked.catch(() => {});
    return { stack: stackOf(await Promise.race([asked, late])) };
  } catch (error) {
    return { because: (error as Error).message };
  } finally {
    timer?.cancel();
    question.close();
  }
}

/** One question to a debugger. The answer may come from untrusted code, so nothing in it may throw here. */
class Question {
  /** What has not happened yet, for the message. */
  waitsFor = "its debugger did not open";
  #socket: Socket | undefined;
  #isClosed = false;

  async ask(open: () => Promise<string>): Promise<unknown> {
    const url = await open();
    this.waitsFor = "its debugger did not answer";
    const socket = await this.#connect(url);
    this.waitsFor = "its code did not answer the debugger";
    return this.#evaluate(socket);
  }

  close(): void {
    this.#isClosed = true;
    this.#socket?.destroy();
  }

  /**
   * A minimal WebSocket over a plain socket: loading Node's, or its HTTP client, would block the event loop of the
   * worker for 40 to 100 ms.
   */
  #connect(url: string): Promise<Socket> {
    const { hostname, port, pathname } = new URL(url);
    return new Promise((resolve, reject) => {
      if (this.#isClosed) return;
      const socket = connect({ host: hostname, port: Number(port) });
      this.#socket = socket;
      socket.on("error", reject);
      socket.on("close", () => reject(new Error("the process ended meanwhile")));
      socket.write(handshake(`${hostname}:${port}`, pathname));
      // The debugger speaks only when it is asked, so its first words are the whole answer to the handshake.
      socket.once("data", (chunk: Buffer) => {
        if (ACCEPTED.test(chunk.toString("latin1"))) resolve(socket);
        else reject(new Error("its debugger refused"));
      });
    });
  }

  #evaluate(socket: Socket): Promise<unknown> {
    const decoder = new FrameDecoder();
    return new Promise((resolve, reject) => {
      socket.on("data", (chunk: Buffer) => {
        try {
          for (const text of decoder.push(chunk)) {
            const answer = JSON.parse(text);
            if (answer?.id !== 1) continue;
            socket.write(evaluation(2, CLOSE), () => resolve(answer.result?.result?.value));
          }
        } catch (error) {
          reject(error);
        }
      });
      socket.on("error", reject);
      socket.on("close", () => reject(new Error("the process ended meanwhile")));
      socket.write(evaluation(1, ASK));
    });
  }
}

function handshake(host: string, path: string): string {
  const lines = [
    `GET ${path} HTTP/1.1`,
    `Host: ${host}`,
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: Y3VyZmV3LXNhbmRib3gtMQ==",
  ];
  return `${lines.join("\r\n")}\r\n\r\n`;
}

function evaluation(id: number, expression: string): Buffer {
  const params = { expression, returnByValue: true, silent: true };
  return encodeFrame(JSON.stringify({ id, method: "Runtime.evaluate", params }));
}

/** The answer comes from untrusted code, which may have replaced the functions that make stacks. */
export function stackOf(stack: unknown): string {
  if (typeof stack !== "string") throw new Error("its answer is not a stack");
  const frames = stack.split("\n").filter((line) => /^\s+at /.test(line) && !OWN_FRAME.test(line));
  if (frames.length === 0) throw new Error("its answer is not a stack");
  while (frames.length > 1 && EMIT_FRAME.test(frames[0] as string)) frames.shift();
  return ["It hung here:", ...frames].join("\n").slice(0, LONGEST_STACK);
}
