import { join } from "node:path";
import { describe, expect, inject, it } from "vitest";
import { openEngine, silentLogger } from "../../src/index.ts";
import { createServer } from "../../src/server/app.ts";
import { openTestEngine } from "../../src/testing/index.ts";
import { createDatabase } from "../postgres.ts";
import { testFolder } from "../support/folders.ts";
import { fuzz, fuzzStore } from "./fuzz/run.ts";
import { fuzzSocket } from "./fuzz/socket.ts";

/** `npm run fuzz` sends a million. */
const IN_PROCESS = 20_000;
const ON_A_DATABASE = 2_000;
const OVER_SOCKET = 3_000;
const GROWTH = 8_000_000;

it("20,000 strange requests cause no 500 and leave nothing behind", async () => {
  const { sent, streams, statuses, heaps, findings } = await fuzz({ seed: 8, requests: IN_PROCESS });
  expect(findings).toEqual([]);
  expect(sent).toBe(IN_PROCESS);
  expect(streams).toBeGreaterThan(1_000);
  // What only meets a closed door tests nothing: every kind of answer must have been reached.
  for (const status of [200, 201, 400, 404, 405, 409, 413, 422])
    expect(statuses.get(status), String(status)).toBeGreaterThan(20);
  const settled = heaps.slice(2);
  expect(Math.max(...settled.slice(-2)) - Math.min(...settled.slice(0, 2))).toBeLessThan(GROWTH);
}, 600_000);

it("3,000 strange byte sequences on a socket leave the server healthy", async () => {
  const { sent, statuses, findings } = await fuzzSocket({ seed: 8, requests: OVER_SOCKET });
  expect(findings).toEqual([]);
  expect(sent).toBe(OVER_SOCKET);
  for (const status of [200, 201, 400, 404]) expect(statuses.get(status), String(status)).toBeGreaterThan(20);
}, 300_000);

describe("what the fuzzer found once", () => {
  const odd = { length: { toString: true } };

  it.each([
    ["/ojs/v1/workers/heartbeat", { worker_id: "w", active_jobs: [odd] }],
    ["/ojs/v1/workers/nack", { job_id: "x", error: { message: odd } }],
    ["/ojs/v1/jobs", { type: odd, args: [] }],
    ["/ojs/v1/jobs", { type: "a", args: [], options: { tags: [odd] } }],
  ])("%s: an object with a length that is no number is refused", async (path, body) => {
    await using test = await openTestEngine();
    const request = new Request(`http://localhost${path}`, { method: "POST", body: JSON.stringify(body) });
    request.headers.set("Content-Type", "application/json");
    const reply = await createServer(test.engine).fetch(request);
    expect(reply.status).toBe(400);
    expect(await reply.json()).toMatchObject({ error: { code: "invalid_request" } });
  });

  it.each([
    "crons",
    "workflows",
    "rate-limits",
    "unique-jobs",
    "dead-letter",
    "jobs",
    "admin/jobs",
    "admin/workers",
    "admin/audit",
  ])("/ojs/v1/%s: a cursor that no database takes is refused", async (path) => {
    await using test = await openTestEngine();
    const request = new Request(`http://localhost/ojs/v1/${path}?cursor=a%00b`);
    const reply = await createServer(test.engine).fetch(request);
    expect(reply.status).toBe(400);
    expect(await reply.json()).toMatchObject({ error: { code: "invalid_request" } });
  });
});

describe("strange requests on a database", () => {
  // What PostgreSQL cannot store (a zero byte, half a character) must be refused before it gets there.
  const check = async (store: string) => {
    const options = { seed: 8, requests: ON_A_DATABASE, store, hasTenants: true };
    const { sent, statuses, findings } = await fuzzStore(options);
    expect(findings).toEqual([]);
    expect(sent).toBe(ON_A_DATABASE);
    for (const status of [200, 201, 400, 403, 404])
      expect(statuses.get(status), String(status)).toBeGreaterThan(5);
    // Half of the ids belong to the other tenant, which is a 404, so conflicts are rare.
    expect(statuses.get(409), "409").toBeGreaterThan(0);
  };

  it("SQLite", async () => {
    const folder = testFolder();
    await check(`sqlite:${join(folder, "fuzz.db")}`);
  }, 300_000);

  it("PostgreSQL", async () => {
    await using database = await createDatabase(inject("postgresUrl"));
    await check(database.url);
  }, 300_000);

  it.each(["rotate-secret", "test"])(
    "an id that PostgreSQL cannot look for is unknown: %s",
    async (action) => {
      await using database = await createDatabase(inject("postgresUrl"));
      await using engine = await openEngine({ store: database.url, logger: silentLogger });
      const url = `http://localhost/ojs/v1/webhooks/subscriptions/%00/${action}`;
      const headers = { "Content-Type": "application/json" };
      const request = new Request(url, { method: "POST", headers, body: "{}" });
      expect((await createServer(engine).fetch(request)).status).toBe(404);
    },
  );

  it.each([
    ["workflows.view", ["\0"]],
    ["workflows.result", ["a\0b"]],
    ["bulk.delete", [{ queue: "\0" }]],
  ])("a call with a text that PostgreSQL cannot look for is refused: %s", async (name, args) => {
    await using database = await createDatabase(inject("postgresUrl"));
    await using engine = await openEngine({ store: database.url, logger: silentLogger });
    const request = new Request(`http://localhost/ojs/v1/calls/${name}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ args }),
    });
    expect((await createServer(engine).fetch(request)).status).toBe(400);
  });
});

describe("the fuzzer finds what is wrong", () => {
  /** The server misbehaves once in this many requests. */
  const faulty = (fault: (request: Request) => Response | Promise<Response>) => {
    let count = 0;
    return (engine: Parameters<typeof createServer>[0]) => {
      const server = createServer(engine);
      return {
        fetch: (request: Request) => (++count % 97 === 0 ? fault(request) : server.fetch(request)),
        close: () => server.close(),
      };
    };
  };
  const headers = { "x-request-id": "x", "content-type": "application/openjobspec+json" };

  it.each([
    ["a failure", () => new Response("{}", { status: 500, headers }), /500/],
    ["a throw", () => Promise.reject(new Error("planted")), /planted/],
    ["a hang", () => new Promise<Response>(() => {}), /was not answered/],
    ["a stack", () => new Response(String(new Error("x").stack), { headers }), /our insides/],
    ["a reply that is not JSON", () => new Response("oops", { headers }), /not JSON/],
    [
      "a stream that begins oddly",
      () => new Response("data: 1\n\n", { headers: { ...headers, "content-type": "text/event-stream" } }),
      /stream that begins/,
    ],
    ["a reply without an id", () => new Response("{}", { status: 400 }), /without a request id/],
  ] as const)("%s", async (_what, fault, message) => {
    const { findings } = await fuzz({ seed: 1, requests: 100, make: faulty(fault) });
    expect(findings.join("\n")).toMatch(message);
  });

  it("a stream that cannot be left", async () => {
    const make = (engine: Parameters<typeof createServer>[0]) => {
      const server = createServer(engine);
      const fetch = async (request: Request) => {
        const response = await server.fetch(request);
        const isStream = response.headers.get("content-type") === "text/event-stream";
        // One of two halves can leave as it likes: the other one still reads along.
        return isStream && response.body ? new Response(response.body.tee()[0], response) : response;
      };
      return { fetch, close: () => server.close() };
    };
    const { findings } = await fuzz({ seed: 1, requests: 100, make });
    expect(findings.join("\n")).toMatch("was not answered");
  });

  it("a leak", async () => {
    const kept: string[][] = [];
    const leak = (request: Request) => {
      kept.push(Array.from({ length: 5_000 }, (_, index) => request.url + index));
      return new Response("{}", { headers });
    };
    const { heaps } = await fuzz({ seed: 1, requests: 10_000, make: faulty(leak) });
    expect((heaps[1] as number) - (heaps[0] as number)).toBeGreaterThan(GROWTH);
    expect(kept.length).toBeGreaterThan(0);
  });
});
