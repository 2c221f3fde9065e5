import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** Whatever takes a request and answers with the text of the reply. */
export interface Line {
  post(path: string, body: string): Promise<string>;
  close(): void;
}

interface Waiting {
  readonly resolve: (body: string) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A keep-alive HTTP client over one socket, for measuring a server: Node's own clients cost more than the server that
 * they would measure. It understands what a reply with a Content-Length needs and nothing else. Requests that are sent
 * before the reply to the last one has come are pipelined, and those of one turn leave in one piece.
 */
export class HttpClient implements Line {
  readonly #socket: Socket;
  readonly #host: string;
  readonly #waiting: Waiting[] = [];
  #buffered: Buffer = Buffer.alloc(0);
  #unsent = "";

  private constructor(socket: Socket, host: string) {
    this.#socket = socket;
    this.#host = host;
    socket.on("data", (chunk) => this.#hear(chunk));
    socket.on("error", (error) => this.#fail(error));
    socket.on("close", () => this.#fail(new Error("the server closed the connection")));
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
      this.#waiting.push({ resolve, reject });
      if (this.#unsent === "") process.nextTick(() => this.#send());
      const length = Buffer.byteLength(body);
      this.#unsent += `POST ${path} HTTP/1.1\r\nHost: ${this.#host}\r\nContent-Type: application/openjobspec+json\r\nContent-Length: ${length}\r\n\r\n${body}`;
    });
  }

  #send(): void {
    this.#socket.write(this.#unsent);
    this.#unsent = "";
  }

  #hear(chunk: Buffer): void {
    this.#buffered = this.#buffered.length === 0 ? chunk : Buffer.concat([this.#buffered, chunk]);
    while (this.#hearReply()) {}
  }

  /** False if the reply is not complete yet. */
  #hearReply(): boolean {
    const end = this.#buffered.indexOf("\r\n\r\n");
    if (end === -1) return false;
    const head = this.#buffered.toString("latin1", 0, end);
    const length = Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? 0);
    const total = end + 4 + length;
    if (this.#buffered.length < total) return false;
    const body = this.#buffered.toString("utf8", end + 4, total);
    this.#buffered = this.#buffered.subarray(total);
    const status = Number(head.slice(9, 12));
    const waiting = this.#waiting.shift();
    if (status < 400) waiting?.resolve(body);
    else waiting?.reject(new Error(`${status} ${body}`));
    return true;
  }

  #fail(error: Error): void {
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }

  close(): void {
    this.#waiting.length = 0;
    this.#socket.destroy();
  }
}
