import { Progress } from "./progress.ts";

/** What a command says. Standard output holds data and nothing else; everything about it goes to standard error. */
export interface Output {
  readonly isJson: boolean;
  /** The answer: one JSON document with `--json`, text for people otherwise. */
  answer(data: unknown, text: () => string): void;
  /** One of many that come as they happen: a JSON document per line, or a line of text. */
  line(data: unknown, text: () => string): void;
  /** A remark for people, on standard error; nothing with `--json`. */
  note(text: string): void;
  /** Runs something that may take a while, with a line that says so from its first second on. */
  during<Value>(what: string, act: (progress: Progress) => Promise<Value>): Promise<Value>;
}

export function createOutput(isJson: boolean): Output {
  const write = (data: unknown, text: () => string) => {
    const written = isJson ? JSON.stringify(data) : text();
    if (written !== "") process.stdout.write(`${written}\n`);
  };
  return {
    isJson,
    answer: write,
    line: write,
    note: (text) => {
      if (!isJson) process.stderr.write(`${text}\n`);
    },
    async during(what, act) {
      const progress = new Progress(what);
      try {
        return await act(progress);
      } finally {
        progress.end();
      }
    },
  };
}
