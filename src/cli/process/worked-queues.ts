import { InvalidArgumentError } from "commander";

/** A queue that a worker takes, and how many of its jobs run at once if the command line says so. */
export interface WorkedQueue {
  readonly name: string;
  readonly concurrency?: number;
}

const MOST_CONCURRENCY = 10_000;

/** `mail=5,payments` -> mail with 5 at once, and payments. */
export function workedQueues(text: string): readonly WorkedQueue[] {
  return text.split(",").map((part) => {
    const [, name, count] = /^([^=\s]+)(?:=([1-9]\d{0,4}))?$/.exec(part.trim()) ?? [];
    if (name === undefined || Number(count ?? 1) > MOST_CONCURRENCY)
      throw new InvalidArgumentError("Write names with commas between them, such as mail,payments=5.");
    return count === undefined ? { name } : { name, concurrency: Number(count) };
  });
}
