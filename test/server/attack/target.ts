import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";

export interface Measured {
  /** The longest block of the event loop since the last measurement, in milliseconds of CPU. */
  readonly longest: number;
  /** The largest memory of the server process, in bytes. */
  readonly peak: number;
}

/** A server process that can be attacked and measured. */
export class Target implements AsyncDisposable {
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(url: string, child: ChildProcess) {
    this.url = url;
    this.#child = child;
  }

  static async start(store = "memory:"): Promise<Target> {
    const child = fork(new URL("child.ts", import.meta.url), [store]);
    const [{ url }] = (await once(child, "message")) as [{ url: string }];
    return new Target(url, child);
  }

  async measure(): Promise<Measured> {
    const reply = once(this.#child, "message");
    this.#child.send("measure");
    return ((await reply) as [Measured])[0];
  }

  /** Sends one request under `/ojs/v1`. */
  async send(
    method: string,
    path: string,
    body?: string | object,
  ): Promise<{ status: number; text: string }> {
    const response = await fetch(`${this.url}/ojs/v1${path}`, {
      method,
      ...(body !== undefined && {
        headers: { "Content-Type": "application/json" },
        body: typeof body === "string" ? body : JSON.stringify(body),
      }),
    });
    return { status: response.status, text: await response.text() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exit = once(this.#child, "exit");
    this.#child.send("close");
    await exit;
  }
}
