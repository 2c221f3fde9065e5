import type { Json } from "../core/schema.ts";
import { decodeError, type ErrorText, type Report } from "./protocol.ts";

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The most questions at once; further ones wait here. A loop over thousands of enqueues must fill neither the pipe
 * nor the worker.
 */
const MOST_ASKED = 100;

/** The questions of an attempt to the worker: checkpoints and enqueues, each with a number. */
export class Questions {
  readonly #report: (report: Report) => void;
  readonly #asked = new Map<number, Waiting>();
  readonly #next: { readonly report: (number: number) => Report; readonly waiting: Waiting }[] = [];
  #count = 0;

  constructor(report: (report: Report) => void) {
    this.#report = report;
  }

  ask(report: (number: number) => Report): Promise<unknown> {
    const answer = new Promise<unknown>((resolve, reject) => {
      this.#next.push({ report, waiting: { resolve, reject } });
    });
    // A caller that does not await the answer must not be ended by its rejection.
    answer.catch(() => {});
    this.#send();
    return answer;
  }

  #send(): void {
    while (this.#asked.size < MOST_ASKED) {
      const next = this.#next.shift();
      if (!next) return;
      const number = this.#count++;
      this.#asked.set(number, next.waiting);
      this.#report(next.report(number));
    }
  }

  answered(number: number, value: Json | undefined, error: ErrorText | undefined): void {
    const waiting = this.#asked.get(number);
    this.#asked.delete(number);
    if (error) waiting?.reject(decodeError(error));
    else waiting?.resolve(value);
    this.#send();
  }
}
