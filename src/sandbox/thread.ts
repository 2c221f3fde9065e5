import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import type { System } from "../ports/system.ts";
import { type Carrier, type CarrierEvents, type CarrierOptions, environmentOf } from "./carrier.ts";
import { LineReader } from "./line-reader.ts";
import { type Silence, UNSEEN } from "./proc.ts";
import { MESSAGE_LIMIT, type Order, ProtocolFlaw, parseReport } from "./protocol.ts";
import { entryOf } from "./reaper.ts";
import type { Look } from "./stack.ts";
import { captureThreadStack } from "./thread-stack.ts";

/**
 * A worker thread. It starts faster and uses less memory than a process. But it ends with the worker's process, and
 * nothing can end it inside a native call.
 */
export class ThreadCarrier implements Carrier {
  readonly #worker: Worker;
  readonly #system: System;
  readonly #captures: boolean;
  #error: { readonly error: unknown } | undefined;

  constructor(system: System, options: CarrierOptions, events: CarrierEvents) {
    this.#system = system;
    this.#captures = options.captures;
    this.#worker = new Worker(pathToFileURL(entryOf("child")), {
      stdout: true,
      stderr: true,
      env: environmentOf(options.env),
      resourceLimits: { maxOldGenerationSizeMb: options.memory },
      ...(options.flags.length > 0 && { execArgv: [...options.flags] }),
    });
    this.#worker.on("message", (text: unknown) => {
      try {
        events.onReport(readReport(text));
      } catch (error) {
        events.onFlaw((error as Error).message);
      }
    });
    this.#worker.on("error", (error) => {
      this.#error ??= { error };
    });
    // Node delivers all messages of a thread before its exit.
    this.#worker.on("exit", (code) =>
      events.onExit({ code, signal: null, ...this.#error, isHeardOut: true }),
    );
    for (const name of ["stdout", "stderr"] as const) {
      const lines = new LineReader((line) => events.onLine(name, line));
      this.#worker[name].setEncoding("utf8").on("data", (text: string) => lines.push(text));
      this.#worker[name].on("end", () => lines.flush());
    }
    this.#worker.unref();
  }

  send(order: Order): void {
    this.#worker.postMessage(JSON.stringify(order));
  }

  kill(): void {
    void this.#worker.terminate();
  }

  /** Its memory is part of the process. Only its heap has a limit. */
  memory(): undefined {
    return undefined;
  }

  silence(): Silence {
    return UNSEEN;
  }

  async capture(limit: number): Promise<Look> {
    if (!this.#captures) return { because: "capture is turned off" };
    const look = await captureThreadStack(this.#system, this.#worker.threadId, limit);
    return "stack" in look ? look : { because: `${look.because}; ${UNSEEN.says}` };
  }
}

function readReport(text: unknown) {
  if (typeof text !== "string") throw new ProtocolFlaw("a message that is not a text");
  if (text.length > MESSAGE_LIMIT)
    throw new ProtocolFlaw(`a message of more than ${MESSAGE_LIMIT} characters`);
  return parseReport(text);
}
