import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

/** What stands between a client and its server. */
interface Pair {
  readonly client: Socket;
  readonly server: Socket;
}

/**
 * An address that moves between servers, like a virtual IP. It can also imitate a machine that vanishes: it then
 * neither answers nor closes, as when packets get no reply.
 */
export class TcpProxy implements AsyncDisposable {
  readonly #listener: Server;
  readonly #pairs = new Set<Pair>();
  /** Clients that connected while the address was silent. They never get an answer. */
  readonly #unheard = new Set<Socket>();
  #target: number;
  #mode: "pass" | "silent" | "refuse" = "pass";

  private constructor(target: number) {
    this.#target = target;
    this.#listener = createServer((client) => this.#accept(client));
  }

  static async start(target: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    proxy.#listener.listen(0, "127.0.0.1");
    await once(proxy.#listener, "listening");
    return proxy;
  }

  get port(): number {
    const address = this.#listener.address();
    if (address === null || typeof address === "string") throw new Error("the proxy does not listen");
    return address.port;
  }

  /** The same address by way of the proxy. */
  through(url: string): string {
    const shown = new URL(url);
    shown.port = String(this.port);
    return shown.href;
  }

  /** How many clients have an open connection. */
  get open(): number {
    return this.#pairs.size + this.#unheard.size;
  }

  /** From now on nothing passes, in either direction, and nothing is closed. Connections of now stay silent for ever. */
  vanish(): void {
    this.#mode = "silent";
    for (const { client, server } of this.#pairs) {
      client.pause();
      server.pause();
      client.unpipe(server);
      server.unpipe(client);
      this.#unheard.add(client);
      this.#forgetWhenClosed(client);
      server.destroy();
    }
    this.#pairs.clear();
  }

  /** Closes all connections and refuses new ones, as a machine does whose server has crashed. */
  cut(): void {
    this.#mode = "refuse";
    this.#dropPairs();
  }

  /** New connections go to this port. Those that were silenced stay silent. */
  moveTo(port: number): void {
    this.#target = port;
    this.#mode = "pass";
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#mode = "refuse";
    this.#dropPairs();
    for (const client of this.#unheard) client.destroy();
    this.#listener.close();
    await once(this.#listener, "close");
  }

  #accept(client: Socket): void {
    client.on("error", () => {});
    if (this.#mode === "refuse") {
      client.resetAndDestroy();
      return;
    }
    if (this.#mode === "silent") {
      this.#unheard.add(client);
      this.#forgetWhenClosed(client);
      return;
    }
    const server = connect(this.#target, "127.0.0.1");
    const pair = { client, server };
    this.#pairs.add(pair);
    server.on("error", () => {});
    client.pipe(server);
    server.pipe(client);
    client.on("close", () => {
      this.#pairs.delete(pair);
      server.destroy();
    });
    server.on("close", () => {
      if (this.#pairs.delete(pair)) client.destroy();
    });
  }

  #dropPairs(): void {
    for (const { client, server } of [...this.#pairs]) {
      client.resetAndDestroy();
      server.destroy();
    }
  }

  /** A paused socket does not notice that its client closed, so what it gets is thrown away. */
  #forgetWhenClosed(client: Socket): void {
    client.on("data", () => {});
    client.resume();
    client.on("close", () => this.#unheard.delete(client));
  }
}
