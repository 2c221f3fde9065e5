/** What the tests of the client share: a server and a remote worker on one virtual machine, with a wire that can be cut. */

import { onTestFinished } from "vitest";
import type { Client } from "../../src/client/client.ts";
import { openClient } from "../../src/client/index.ts";
import type { RemoteWorker } from "../../src/client/remote-worker.ts";
import type { Fetch } from "../../src/client/transport.ts";
import type { JobRow } from "../../src/core/job/job.ts";
import type { EngineEvent, Processor, WorkOptions } from "../../src/index.ts";
import { silentLogger } from "../../src/ports/log.ts";
import { type CurfewServer, createServer } from "../../src/server/app.ts";
import {
  openTestEngine,
  type SimSystem,
  type TestEngine,
  type TestEngineOptions,
} from "../../src/testing/index.ts";
import { rowOf } from "../../src/testing/read-store.ts";

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly body: { readonly [name: string]: unknown };
}

/** What becomes of a request: it is served, it never arrives, or its reply gets lost on the way back. */
export type Fate = "served" | "unsent" | "unanswered";

/** The wire between a client and its server. */
export class Wire {
  server: CurfewServer;
  readonly calls: Call[] = [];
  /** Decides about each request; everything is served unless a test says otherwise. */
  fate: (call: Call) => Fate = () => "served";
  /** Answers in the server's place. */
  answer: (call: Call) => Response | undefined = () => undefined;

  /** Keeps a reply back for as long as a test wants. */
  hold: (call: Call) => Promise<void> = async () => {};
  /** How long a request takes to arrive, and its reply to come back. */
  latency = 0;
  readonly #system: SimSystem | undefined;

  constructor(server: CurfewServer, system?: SimSystem) {
    this.server = server;
    this.#system = system;
  }

  async #travel(): Promise<void> {
    const { latency } = this;
    if (latency > 0) await new Promise<void>((resolve) => void this.#system?.after(latency, resolve));
  }

  readonly fetch: Fetch = async (url, init) => {
    const text = init.body ?? "{}";
    const call = { method: init.method, path: new URL(url).pathname.slice(7), body: JSON.parse(text) };
    this.calls.push(call);
    const fate = this.fate(call);
    if (fate === "unsent") throw cutOff("ECONNREFUSED");
    await this.#travel();
    const response = this.answer(call) ?? (await this.server.fetch(new Request(url, init)));
    await this.#travel();
    await this.hold(call);
    if (fate === "served") return response;
    throw cutOff("ECONNRESET");
  };

  /** Nothing gets through until the wire is mended. */
  cut(): void {
    this.fate = () => "unsent";
  }

  mend(): void {
    this.fate = () => "served";
  }

  sent(path: string): Call[] {
    return this.calls.filter((call) => call.path.endsWith(path));
  }
}

function cutOff(code: string): Error {
  return new TypeError("fetch failed", { cause: Object.assign(new Error(code), { code }) });
}

export interface ClientStage extends Pick<TestEngine, "engine" | "system" | "advance" | "settle"> {
  readonly client: Client;
  readonly server: CurfewServer;
  readonly wire: Wire;
  /** What the client's own process tells. */
  readonly told: EngineEvent[];
  work(processors: readonly Processor[], options?: Omit<WorkOptions, "processors">): RemoteWorker;
  load(job: { readonly id: string }): Promise<JobRow>;
  sleep(delay: number): Promise<void>;
  /** Another client with a wire of its own. */
  another(): { client: Client; wire: Wire };
}

export async function openClientStage(
  options: TestEngineOptions = {},
  more: Partial<Parameters<typeof openClient>[0]> = {},
): Promise<ClientStage> {
  const test = await openTestEngine(options);
  const { engine, system } = test;
  const server = createServer(engine);
  const clients: Client[] = [];
  const another = () => {
    const wire = new Wire(server, system);
    const client = openClient({
      url: "http://127.0.0.1:8080",
      fetch: wire.fetch,
      system,
      logger: silentLogger,
      ...more,
    });
    clients.push(client);
    return { client, wire };
  };
  const { client, wire } = another();
  const told: EngineEvent[] = [];
  for (const name of ["job.lost", "job.stuck", "job.unstuck", "job.killed", "worker.unready"] as const)
    client.on(name, (event) => told.push(event));
  onTestFinished(async () => {
    const closing = Promise.all(clients.map((each) => each.close({ drain: "0s" })));
    await test.advance("30s");
    await closing;
    await test.close();
  });
  return {
    engine,
    system,
    advance: (delay) => test.advance(delay),
    settle: () => test.settle(),
    client,
    server,
    wire,
    told,
    another,
    work: (processors, more) => client.work({ processors, ...more }),
    load: async ({ id }) => {
      const row = await rowOf(engine.store, id);
      if (!row) throw new Error(`there is no job ${id}`);
      return row;
    },
    sleep: (delay) => new Promise((resolve) => void system.after(delay, resolve)),
  };
}
