import { EventEmitter } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { CurfewServer } from "../src/server/app.ts";
import type { Line } from "./http-client.ts";

/** A request as far as the server looks at it; its body comes with the next turn, as it does from a socket. */
class Incoming extends EventEmitter {
  readonly method = "POST";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readableDidRead = false;
  readableEnded = false;

  constructor(url: string, text: string) {
    super();
    this.url = url;
    const body = Buffer.from(text);
    this.headers = {
      host: "localhost",
      "content-type": "application/openjobspec+json",
      "content-length": String(body.length),
    };
    process.nextTick(() => {
      this.readableDidRead = true;
      this.emit("data", body);
      this.readableEnded = true;
      this.emit("end");
    });
  }

  pause(): void {}
}

/**
 * Calls a server's handler as Node would, without a socket, a parser and the writing of heads: what is left is the
 * server's own work. It is what the benchmarks inside the reference servers time.
 */
export class RouterLine implements Line {
  readonly #server: Pick<CurfewServer, "handle">;

  constructor(server: Pick<CurfewServer, "handle">) {
    this.#server = server;
  }

  post(path: string, body: string): Promise<string> {
    return new Promise((resolve, reject) => {
      let status = 0;
      const outgoing = {
        destroyed: false,
        headersSent: false,
        writeHead: (given: number) => {
          status = given;
        },
        end: (text: string) => {
          if (status < 400) resolve(text);
          else reject(new Error(`${status} ${text}`));
        },
      };
      const incoming = new Incoming(path, body) as unknown as IncomingMessage;
      if (!this.#server.handle(incoming, outgoing as unknown as ServerResponse))
        reject(new Error(`${path} has no short way`));
    });
  }

  close(): void {}
}
