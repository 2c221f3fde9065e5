import { once } from "node:events";
import { connect, type Socket } from "node:net";

/**
 * A keep-alive HTTP client over one socket, for measuring a server: Node's own clients cost more than the server that
 * they would measure. It understands what a reply with a Content-Length needs and nothing else.
 */
export class HttpClient {
  readonly #socket: Socket;
  readonly #host: string;
  #buffered: Buffer = Buffer.alloc(0);
  #resolve: ((body: string) => void) | undefined;
  #reject: ((error: Error) => void) | undefined;

  private constructor(socket: Socket, host: string) {
    this.#socket = socket;
    this.#host = host;
    socket.on("data", (chunk) => this.#hear(chunk));
    socket.on("error", (error) => this.#reject?.(error));
    socket.on("close", () => this.#reject?.(new Error("the server closed the connection")));
  }

  static async open(url: string): Promise<HttpClient> {
    const { hostname, port, host } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    await once(socket, "connect");
    return new HttpClient(socket, host);
  }

  /** Sends a body and resolves with the text of the reply; a status of 400 or more is an error. */
  post(path: string, body: string): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      const length = Buffer.byteLength(body);
      this.#socket.write(
        `POST ${path} HTTP/1.1\r\nHost: ${this.#host}\r\nContent-Type: application/openjobspec+json\r\nContent-Length: ${length}\r\n\r\n${body}`,
      );
    });
  }

  #hear(chunk: Buffer): void {
    this.#buffered = this.#buffered.length === 0 ? chunk : Buffer.concat([this.#buffered, chunk]);
    const end = this.#buffered.indexOf("\r\n\r\n");
    if (end === -1) return;
    const head = this.#buffered.toString("latin1", 0, end);
    const length = Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? 0);
    const total = end + 4 + length;
    if (this.#buffered.length < total) return;
    const body = this.#buffered.toString("utf8", end + 4, total);
    this.#buffered = this.#buffered.subarray(total);
    const status = Number(head.slice(9, 12));
    if (status < 400) this.#resolve?.(body);
    else this.#reject?.(new Error(`${status} ${body}`));
  }

  close(): void {
    this.#reject = undefined;
    this.#socket.destroy();
  }
}
