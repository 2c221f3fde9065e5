import { realSystem } from "../../engine/runtime/real-system.ts";
import { Progress } from "./progress.ts";

/** Standard output gets the data and nothing else. Notes and progress go to standard error. */
export interface Output {
  readonly isJson: boolean;
  /** The answer: one JSON document with `--json`, text for people otherwise. */
  answer(data: unknown, text: () => string): void;
  /** One item of a stream: a JSON document per line, or a line of text. */
  line(data: unknown, text: () => string): void;
  /** Prints a note for people on standard error; nothing with `--json`. */
  note(text: string): void;
  /** Shows no progress from now on: the command draws the screen itself. */
  hideProgress(): void;
  /** Runs `act`, and shows a progress line if it takes more than a second. */
  during<Value>(what: string, act: (progress: Progress) => Promise<Value>): Promise<Value>;
}

export function createOutput(isJson: boolean): Output {
  const write = (data: unknown, text: () => string) => {
    const written = isJson ? JSON.stringify(data) : text();
    if (written !== "") process.stdout.write(`${written}\n`);
  };
  let isHidden = false;
  return {
    isJson,
    answer: write,
    line: write,
    note: (text) => {
      if (!isJson) process.stderr.write(`${text}\n`);
    },
    hideProgress() {
      isHidden = true;
    },
    async during(what, act) {
      const progress = new Progress(what, realSystem, isHidden ? undefined : process.stderr);
      try {
        return await act(progress);
      } finally {
        progress.end();
      }
    },
  };
}
