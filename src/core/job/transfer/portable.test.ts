import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type EnqueueOptions, prepareJob } from "../enqueue/envelope.ts";
import { defineJob } from "../job-definition.ts";
import { delays, exponential } from "../policy/retry.ts";
import { portableDefinition, portableOptions } from "./portable.ts";

const NOW = Date.parse("2030-01-01T00:00:00Z");
const CONTEXT = {
  now: NOW,
  nextId: () => "00000000-0000-7000-8000-000000000000",
  hash: (text: string) => text,
};
const travelled = <Value>(value: Value): Value => JSON.parse(JSON.stringify(value));

describe("a definition that travels", () => {
  it.each([
    defineJob({ type: "a.b" }),
    defineJob({
      type: "a.b",
      payload: z.string(),
      queue: "mail",
      priority: -7,
      timeouts: { wait: "5m", attempt: "none", total: "2h", grace: "0s", heartbeat: "90s", mode: "discard" },
      retry: { attempts: 7, backoff: exponential({ first: "2s" }), except: ["timeout"], onStall: "discard" },
      retention: { completed: "0s", discarded: "7d" },
    }),
    defineJob({
      type: "c",
      limit: { key: "k", rate: { limit: 2, per: "1m" }, onLimit: { reschedule: "5s" } },
    }),
    defineJob({ type: "c", limit: { key: "k", concurrency: 1, strict: true, onLimit: "drop" } }),
    defineJob({ type: "c", timeouts: { grace: "unbounded", wait: "none" }, retention: "1h" }),
  ])("means the same when it arrives", (definition) => {
    const arrived = defineJob(travelled(portableDefinition(definition)));
    expect({ ...arrived, payload: undefined }).toEqual({ ...definition, payload: undefined });
  });
});

describe("a limit whose key is a function", () => {
  it("travels with the key of the payload", () => {
    const limit = { key: ({ user }: { user: string }) => `user ${user}`, concurrency: 1 };
    const definition = defineJob({ type: "a.b", payload: z.object({ user: z.string() }), limit });
    const arrived = defineJob(travelled(portableDefinition(definition, { user: "7" })));
    expect(arrived.limit).toEqual({ key: "user 7", limit: { concurrency: 1 } });
  });
});

describe("the options of an enqueue that travel", () => {
  it.each<EnqueueOptions>([
    {},
    { delay: { minutes: 5 }, priority: 3, queue: "mail", meta: { a: [1, null] }, detach: true },
    { at: new Date(NOW + 60_000), expiresAt: { epochMilliseconds: NOW + 120_000 } },
    { at: "2030-01-02T00:00:00+01:00", id: "00000000-0000-7000-8000-000000000001" },
    { limit: { key: "k", concurrency: 2, rate: { limit: 5, per: { seconds: 3 } } } },
    { limit: "none" },
    {
      timeouts: { attempt: "1m", grace: "unbounded", heartbeat: "none" },
      retry: { attempts: 2, backoff: delays(["1s", "2s"]) },
      retention: "0s",
    },
  ])("mean the same when they arrive", (options) => {
    const definition = defineJob({ type: "a" });
    const arrived = travelled(portableOptions(options));
    expect(prepareJob(definition, arrived, CONTEXT)).toEqual(prepareJob(definition, options, CONTEXT));
  });

  it("are refused where they are written", () => {
    expect(() => portableOptions({ tx: {} as never })).toThrow("options.tx");
    expect(() => portableOptions({ delay: "soon" as never })).toThrow("options.delay");
    expect(() => portableOptions({ later: true } as never)).toThrow("options.later");
    expect(() => portableOptions({ meta: { at: new Date(0) as never } })).toThrow("options.meta.at");
  });
});
