import type { Duration } from "../../src/core/time.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { type CurfewServer, createServer, type ServerOptions } from "../../src/server/app.ts";
import { openTestEngine, type TestEngine, type TestEngineOptions } from "../../src/testing/test-engine.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests look into replies whose shape is what they test.
type Body = any;

export interface Answered {
  readonly status: number;
  readonly body: Body;
  readonly headers: Headers;
}

/** A server on virtual time, called without a network. */
export interface Stage extends AsyncDisposable {
  readonly engine: Engine;
  readonly server: CurfewServer;
  readonly test: TestEngine;
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answered>;
  post(path: string, body?: unknown): Promise<Answered>;
  get(path: string): Promise<Answered>;
  /** Enqueues a job and gives it back; fails the test where that is refused. */
  enqueue(options?: object, more?: object): Promise<Body>;
  /** Fetches one job; undefined if there is none. */
  fetch(more?: object): Promise<Body>;
  job(id: string): Promise<Body>;
  advance(delay: Duration): Promise<void>;
}

const BASE = "http://127.0.0.1/ojs/v1";

export async function openStage(
  options: TestEngineOptions = {},
  serverOptions: ServerOptions = {},
): Promise<Stage> {
  const test = await openTestEngine(options);
  const server = createServer(test.engine, serverOptions);
  const call: Stage["call"] = async (method, path, body, headers = {}) => {
    const url = path.startsWith("/ojs") || path.startsWith("http") ? path : `${BASE}${path}`;
    const request = new Request(new URL(url, BASE), {
      method,
      headers: { "Content-Type": "application/openjobspec+json", ...headers },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const response = await until(test, Promise.resolve(server.fetch(request)));
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text === "" ? null : parse(text) };
  };
  const post: Stage["post"] = (path, body = {}) => call("POST", path, body);
  return {
    engine: test.engine,
    server,
    test,
    call,
    post,
    get: (path) => call("GET", path),
    async enqueue(jobOptions = {}, more = {}) {
      const { status, body } = await post("/jobs", {
        type: "test.job",
        args: [1],
        options: jobOptions,
        ...more,
      });
      if (status !== 201) throw new Error(`enqueue answered ${status}: ${JSON.stringify(body)}`);
      return body.job;
    },
    async fetch(more = {}) {
      const { status, body } = await post("/workers/fetch", {
        queues: ["default"],
        worker_id: "w-1",
        ...more,
      });
      if (status !== 200) throw new Error(`fetch answered ${status}: ${JSON.stringify(body)}`);
      return body.jobs[0];
    },
    job: async (id) => (await call("GET", `/jobs/${id}`)).body.job,
    advance: (delay) => test.advance(delay),
    [Symbol.asyncDispose]: () => test.close(),
  };
}

function parse(text: string): Body {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Lets the virtual machine work until the reply is there; no virtual time passes. */
async function until<Value>(test: TestEngine, promise: Promise<Value>): Promise<Value> {
  let isDone = false;
  const done = promise.finally(() => {
    isDone = true;
  });
  for (let turns = 0; !isDone && turns < 1_000; turns++) await test.settle();
  return done;
}
