import type { Json } from "../core/schema.ts";
import { decodeError, type ErrorText, type Report } from "./protocol.ts";

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** More wait here, so that a loop over thousands of enqueues fills neither the pipe nor the worker. */
const MOST_ASKED = 100;

/** What an attempt has asked of the worker and waits for: checkpoints and enqueues, told apart by number. */
export class Questions {
  readonly #tell: (report: Report) => void;
  readonly #asked = new Map<number, Waiting>();
  readonly #next: { readonly report: (number: number) => Report; readonly waiting: Waiting }[] = [];
  #count = 0;

  constructor(tell: (report: Report) => void) {
    this.#tell = tell;
  }

  ask(report: (number: number) => Report): Promise<unknown> {
    const answer = new Promise<unknown>((resolve, reject) => {
      this.#next.push({ report, waiting: { resolve, reject } });
    });
    // Whoever does not wait for the answer must not be ended by it.
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
      this.#tell(next.report(number));
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
