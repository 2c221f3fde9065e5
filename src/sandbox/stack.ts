import { readFile } from "node:fs/promises";
import { request } from "node:http";
import { SourceMap } from "node:module";
import type { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import type { System } from "../ports/system.ts";
import { encodeFrame, FrameDecoder } from "./websocket.ts";

interface CaptureOptions {
  readonly system: System;
  /** Milliseconds; what is not known by then stays unknown. */
  readonly limit: number;
  /** Asks the process to open its debugger, and gives the address that it prints. */
  readonly open: () => Promise<string>;
}

interface CallFrame {
  readonly functionName: string;
  readonly location: {
    readonly scriptId: string;
    readonly lineNumber: number;
    readonly columnNumber?: number;
  };
}

interface Script {
  readonly url: string;
  readonly sourceMapURL: string;
}

const MOST_FRAMES = 30;
const LARGEST_MAP = 2_000_000;

/**
 * The JavaScript stack of a process whose event loop is blocked, asked from outside. Node runs its debugger on a
 * thread of its own and opens it at SIGUSR1, so this works in an endless loop; it does not inside a native call.
 */
export async function captureStack({ system, limit, open }: CaptureOptions): Promise<string> {
  let socket: Socket | undefined;
  let timer: { cancel(): void } | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = system.after(limit, () => reject(new Error(`nothing was learned within ${limit} ms`)));
  });
  try {
    const paused = (async () => {
      socket = await connect(await open());
      return pause(socket);
    })();
    // The one that loses the race may still fail, long after anybody listens.
    paused.catch(() => {});
    const { frames, scripts } = await Promise.race([paused, late]);
    return await Promise.race([format(frames, scripts), late]);
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

function pause(socket: Socket): Promise<{ frames: readonly CallFrame[]; scripts: Map<string, Script> }> {
  const scripts = new Map<string, Script>();
  const decoder = new FrameDecoder();
  return new Promise((resolve, reject) => {
    socket.on("data", (chunk: Buffer) => {
      for (const text of decoder.push(chunk)) {
        const { method, params } = JSON.parse(text);
        if (method === "Debugger.scriptParsed") scripts.set(params.scriptId, params as Script);
        else if (method === "Debugger.paused") {
          socket.write(encodeFrame(JSON.stringify({ id: 3, method: "Debugger.resume" })));
          resolve({ frames: params.callFrames, scripts });
        }
      }
    });
    socket.on("error", reject);
    socket.on("close", () => reject(new Error("the process ended meanwhile")));
    for (const [index, method] of ["Debugger.enable", "Debugger.pause"].entries())
      socket.write(encodeFrame(JSON.stringify({ id: index + 1, method })));
  });
}

async function format(frames: readonly CallFrame[], scripts: Map<string, Script>): Promise<string> {
  const maps = new Map<string, Promise<SourceMap | undefined>>();
  const lines = frames.slice(0, MOST_FRAMES).map(async ({ functionName, location }) => {
    const script = scripts.get(location.scriptId);
    let url = script?.url ?? "unknown";
    let [line, column] = [location.lineNumber, location.columnNumber ?? 0];
    if (script?.sourceMapURL) {
      const known = maps.get(url) ?? readMap(script);
      maps.set(url, known);
      const entry = (await known)?.findEntry(line, column);
      if (entry && "originalSource" in entry) {
        url = new URL(entry.originalSource, script.url).href;
        [line, column] = [entry.originalLine, entry.originalColumn];
      }
    }
    return `    at ${functionName || "<anonymous>"} (${url}:${line + 1}:${column + 1})`;
  });
  return ["It hung here:", ...(await Promise.all(lines))].join("\n");
}

/** A map that cannot be read costs the mapped position and not the stack. */
async function readMap({ url, sourceMapURL }: Script): Promise<SourceMap | undefined> {
  try {
    const inline = /^data:application\/json[^,]*;base64,(.*)$/s.exec(sourceMapURL)?.[1];
    const text = inline
      ? Buffer.from(inline, "base64").toString("utf8")
      : await readFile(fileURLToPath(new URL(sourceMapURL, url)), "utf8");
    return text.length > LARGEST_MAP ? undefined : new SourceMap(JSON.parse(text));
  } catch {
    return undefined;
  }
}
