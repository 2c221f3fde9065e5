import { request } from "node:http";
import type { Socket } from "node:net";
import type { System } from "../ports/system.ts";
import { encodeFrame, FrameDecoder } from "./websocket.ts";

interface CaptureOptions {
  readonly system: System;
  /** Milliseconds; what is not known by then stays unknown. */
  readonly limit: number;
  /** Asks the process to open its debugger, and gives the address that it prints. */
  readonly open: () => Promise<string>;
}

const LONGEST_STACK = 8_000;
/** Runs between two steps of whatever is running, on top of its stack; the positions are mapped to the sources inside. */
const ASK = "(() => { Error.stackTraceLimit = 30; return new Error().stack; })()";
/** The frames of the question itself. */
const OWN_FRAME = /^\s+at (\S+ \()?<anonymous>:\d+:\d+\)?$/;

/**
 * The JavaScript stack of a process whose event loop is blocked, asked from outside. Node runs its debugger on a thread
 * of its own and opens it at SIGUSR1, and V8 answers in the middle of a loop without being paused; inside a native call
 * it does not.
 */
export async function captureStack({ system, limit, open }: CaptureOptions): Promise<string> {
  let socket: Socket | undefined;
  let timer: { cancel(): void } | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = system.after(limit, () => reject(new Error(`nothing was learned within ${limit} ms`)));
  });
  try {
    const asked = (async () => {
      socket = await connect(await open());
      return ask(socket);
    })();
    // The one that loses the race may still fail, long after anybody listens.
    asked.catch(() => {});
    return format(await Promise.race([asked, late]));
  } catch (error) {
    return `(no stack: ${(error as Error).message}; code inside a native call cannot be asked)`;
  } finally {
    timer?.cancel();
    socket?.destroy();
  }
}

/** A WebSocket by hand: loading Node's own would block the event loop of the worker for a tenth of a second. */
function connect(url: string): Promise<Socket> {
  const { hostname, port, pathname } = new URL(url);
  return new Promise((resolve, reject) => {
    const asked = request({
      host: hostname,
      port,
      path: pathname,
      agent: false,
      headers: {
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "Y3VyZmV3LXNhbmRib3gtMQ==",
      },
    });
    asked.on("upgrade", (_response, socket) => resolve(socket as Socket));
    asked.on("error", reject);
    asked.end();
  });
}

function ask(socket: Socket): Promise<unknown> {
  const decoder = new FrameDecoder();
  return new Promise((resolve, reject) => {
    socket.on("data", (chunk: Buffer) => {
      for (const text of decoder.push(chunk)) {
        const answer = JSON.parse(text);
        if (answer.id === 1) resolve(answer.result?.result?.value);
      }
    });
    socket.on("error", reject);
    socket.on("close", () => reject(new Error("the process ended meanwhile")));
    const params = { expression: ASK, returnByValue: true, silent: true };
    socket.write(encodeFrame(JSON.stringify({ id: 1, method: "Runtime.evaluate", params })));
  });
}

/** It comes from code that is not trusted, which may have replaced what makes stacks. */
function format(stack: unknown): string {
  if (typeof stack !== "string") throw new Error("what it answered is no stack");
  const frames = stack.split("\n").filter((line) => /^\s+at /.test(line) && !OWN_FRAME.test(line));
  return ["It hung here:", ...frames].join("\n").slice(0, LONGEST_STACK);
}
