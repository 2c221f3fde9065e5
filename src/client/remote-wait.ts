import { CurfewError } from "../core/errors.ts";
import { backoff, jittered } from "../core/pace.ts";
import { type Duration, formatDuration, parseDuration } from "../core/time.ts";
import type { Awaited } from "../ojs/call-names.ts";
import type { Timer } from "../ports/system.ts";
import type { Caller } from "./caller.ts";

/** How long the server holds one request. */
export const WAIT = 2_000;
const POLL = { first: 50, factor: 2, most: 1_000 };

interface WaitOptions {
  readonly within?: Duration;
  readonly signal?: AbortSignal;
}

/**
 * Waits for something at the server. The server holds the request until it happens; an early reply leads to another
 * request after a pause. `subject` is what is waited for and what goes on after the wait: `job 01J…`.
 */
export function waitFor<Value>(
  caller: Caller,
  subject: string,
  options: WaitOptions,
  ask: (wait: number) => Promise<Awaited<Value>>,
): Promise<Value> {
  const within = options.within === undefined ? undefined : parseDuration(options.within, "within");
  return new Promise((resolve, reject) => {
    const wait = new RemoteWait(caller, ask, resolve, reject);
    wait.start(subject, within, options.signal);
  });
}

class RemoteWait<Value> {
  readonly #caller: Caller;
  readonly #ask: (wait: number) => Promise<Awaited<Value>>;
  readonly #resolve: (value: Value) => void;
  readonly #reject: (error: unknown) => void;
  readonly #undo: (() => void)[] = [];
  #poll: Timer | undefined;
  #polls = 1;
  #isOver = false;

  constructor(
    caller: Caller,
    ask: (wait: number) => Promise<Awaited<Value>>,
    resolve: (value: Value) => void,
    reject: (error: unknown) => void,
  ) {
    this.#caller = caller;
    this.#ask = ask;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  start(subject: string, within: number | undefined, signal: AbortSignal | undefined): void {
    const { system } = this.#caller;
    if (within !== undefined) {
      const message = `${subject} did not end within ${formatDuration(within)}; it goes on: ask again, or allow more time`;
      const giveUp = () => this.#fail(new CurfewError("result_timeout", message));
      const limit = system.after(within, giveUp, { keepAlive: true });
      this.#undo.push(() => limit.cancel());
    }
    if (signal) {
      const onAbort = () => this.#fail(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      this.#undo.push(() => signal.removeEventListener("abort", onAbort));
      if (signal.aborted) onAbort();
    }
    const closed = `the client was closed before ${subject} ended; it goes on`;
    this.#undo.push(this.#caller.onClose(() => this.#fail(new CurfewError("closed", closed))));
    void this.#look();
  }

  async #look(): Promise<void> {
    if (this.#isOver) return;
    const { system } = this.#caller;
    const askedAt = system.monotonic();
    try {
      const answer = await this.#ask(WAIT);
      if (answer.isDone && !this.#isOver) {
        this.#end();
        this.#resolve(answer.value);
        return;
      }
    } catch (error) {
      // An unreachable server may come back. A refusal is final.
      const isAway = error instanceof CurfewError && error.code === "server_failed";
      if (!isAway) this.#fail(error);
    }
    if (this.#isOver) return;
    const hasWaited = system.monotonic() - askedAt >= WAIT / 2;
    this.#polls = hasWaited ? 1 : this.#polls + 1;
    const delay = jittered(backoff(this.#polls, POLL), system.random);
    this.#poll = system.after(delay, () => void this.#look(), { keepAlive: true });
  }

  #fail(error: unknown): void {
    if (this.#isOver) return;
    this.#end();
    this.#reject(error);
  }

  #end(): void {
    this.#isOver = true;
    this.#poll?.cancel();
    for (const undo of this.#undo.splice(0)) undo();
  }
}
