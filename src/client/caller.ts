import { CurfewError } from "../core/errors.ts";
import type { Sealing } from "../core/job/documents/sealed.ts";
import type { JobId } from "../core/job/job.ts";
import { type CallName, callPath, isOnce } from "../ojs/call-names.ts";
import type { System } from "../ports/system.ts";
import { errorOf } from "./remote-errors.ts";
import type { Transport } from "./transport.ts";

export interface CallExtras {
  /** Ends the call for the caller. The request may still have its effect. */
  readonly signal?: AbortSignal | undefined;
  /** How long the server may wait, on top of the time limit of a request. */
  readonly wait?: number;
  /** What the call is about, for its errors. */
  readonly about?: string;
  /** The first try may have had its effect: these errors then mean that it had. */
  readonly onRepeated?: (error: CurfewError) => boolean;
}

/** Calls methods of the engine behind the server. */
export class Caller {
  readonly system: System;
  readonly nextId: () => JobId;
  readonly documentLimit: number;
  /** Left out if this process has no keys. */
  readonly sealing: Sealing | undefined;
  readonly #transport: Transport;
  readonly #timeout: number;
  readonly #onClose = new Set<() => void>();
  #isClosed = false;

  constructor(options: {
    readonly system: System;
    readonly transport: Transport;
    readonly timeout: number;
    readonly documentLimit: number;
    readonly nextId: () => JobId;
    readonly sealing: Sealing | undefined;
  }) {
    this.system = options.system;
    this.nextId = options.nextId;
    this.documentLimit = options.documentLimit;
    this.sealing = options.sealing;
    this.#transport = options.transport;
    this.#timeout = options.timeout;
  }

  assertOpen(): void {
    if (this.#isClosed) throw new CurfewError("closed", "the client is closed; open a new one");
  }

  /** Refuses calls from now on. */
  stop(): void {
    this.#isClosed = true;
  }

  /** Ends what still waits. */
  close(): void {
    for (const callback of [...this.#onClose]) callback();
  }

  /** Calls back when the client is closed. Returns the function that unsubscribes. */
  onClose(callback: () => void): () => void {
    this.#onClose.add(callback);
    return () => void this.#onClose.delete(callback);
  }

  /** Trailing arguments that are undefined are not sent, so the engine's defaults apply. */
  async call<Result>(name: CallName, args: readonly unknown[], extras: CallExtras = {}): Promise<Result> {
    this.assertOpen();
    const { signal, wait, about, onRepeated } = extras;
    signal?.throwIfAborted();
    const body = `{"args":${argsText(args)}}`;
    const asked = this.#transport.ask({
      method: "POST",
      path: callPath(name),
      what: name,
      body,
      ...(wait !== undefined && { timeout: this.#timeout + wait }),
      ...(isOnce(name) && { isOnce: true }),
    });
    const reply = await (signal ? unlessAborted(signal, asked) : asked);
    if (reply.status >= 300) {
      const error = errorOf(name, reply, about);
      if (!(reply.isRepeated && onRepeated?.(error))) throw error;
    }
    return (reply.body as { readonly result?: Result } | undefined)?.result as Result;
  }
}

/** Dates become ISO texts. What JSON cannot say is sent as text, so that the engine's refusal shows it. */
function argsText(args: readonly unknown[]): string {
  const sent = args.slice(0, args.findLastIndex((arg) => arg !== undefined) + 1);
  return JSON.stringify(sent, (_key, value: unknown) => {
    const isOdd = typeof value === "bigint" || (typeof value === "number" && !Number.isFinite(value));
    return isOdd ? String(value) : value;
  });
}

function unlessAborted<Value>(signal: AbortSignal, work: Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
