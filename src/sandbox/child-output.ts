import { AsyncLocalStorage } from "node:async_hooks";
import { LineReader } from "./line-reader.ts";
import { MOST_LINES, type Report } from "./protocol.ts";

type Stream = "stdout" | "stderr";

/** What one attempt writes to stdout and stderr, as lines with its key. */
export class Output {
  readonly #readers: Readonly<Record<Stream, LineReader>>;

  constructor(key: string, send: (report: Report) => void) {
    let lines = 0;
    const reader = (stream: Stream) =>
      new LineReader((text) => {
        // The worker keeps no more and logs that, so further lines are not sent.
        if (lines++ < MOST_LINES) send({ say: "print", key, stream, text });
      });
    this.#readers = { stdout: reader("stdout"), stderr: reader("stderr") };
  }

  write(stream: Stream, text: string): void {
    this.#readers[stream].push(text);
  }

  /** Sends a line that has no end yet. */
  flush(): void {
    for (const reader of Object.values(this.#readers)) reader.flush();
  }
}

const current = new AsyncLocalStorage<Output>();

/** Runs the code of an attempt. Its output belongs to the attempt, even after its end. */
export function writingTo<Result>(output: Output, code: () => Result): Result {
  return current.run(output, code);
}

/**
 * Output of an attempt takes the same way as its other reports, in order and with its key. Output of native code and
 * of other processes comes over the streams.
 */
export function captureOutput(): void {
  for (const name of ["stdout", "stderr"] as const) {
    const stream = process[name];
    const write = stream.write.bind(stream);
    stream.write = ((chunk: string | Uint8Array, encoding?: unknown, callback?: unknown) => {
      const output = current.getStore();
      if (!output) return write(chunk, encoding as BufferEncoding, callback as never);
      const isEncoded = typeof encoding === "string" && encoding !== "utf8" && typeof chunk === "string";
      const bytes = isEncoded ? Buffer.from(chunk, encoding as BufferEncoding) : chunk;
      output.write(name, typeof bytes === "string" ? bytes : Buffer.from(bytes).toString("utf8"));
      const done = typeof encoding === "function" ? encoding : callback;
      if (typeof done === "function") process.nextTick(done as () => void);
      return true;
    }) as typeof stream.write;
  }
}
