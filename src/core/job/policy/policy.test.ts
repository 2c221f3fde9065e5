import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { at, DAY, enqueued, policyOf, running, startEvent, step, T0 } from "../../../../test/support/rows.ts";
import type { PolicySettings, SettingSource } from "../job.ts";
import {
  BUILT_IN_RETENTION,
  LOCAL_WORKER,
  parseSettings,
  parseTimeouts,
  policyFor,
  resolveBudgets,
  resolveFields,
  resolvePolicy,
  type SettingsBySource,
  type WorkerKind,
} from "./policy.ts";
import { BUILT_IN_RETRY, constant } from "./retry.ts";

const LADDER = ["enqueue", "definition", "queue", "engine"] as const;

describe("2 which setting wins", () => {
  it.each(LADDER.map((name, index) => [name, LADDER.slice(index)] as const))(
    "%s wins over every less specific source",
    (name, saying) => {
      const settings: SettingsBySource = Object.fromEntries(
        saying.map((source, index) => [source, { timeouts: { attempt: 1_000 + index } }]),
      );
      const { attempt } = resolveFields(settings);
      expect([attempt.value, attempt.source]).toEqual([1_000, name]);
    },
  );

  it("the built-in stands where no source says anything", () => {
    const policy = resolvePolicy({});
    expect(new Set(Object.values(policy.sources))).toEqual(new Set<SettingSource>(["built-in"]));
    expect(policy.retry).toEqual(BUILT_IN_RETRY);
    expect(policy.retention).toEqual(BUILT_IN_RETENTION);
  });

  it("a field left out falls through, each field for itself", () => {
    const policy = resolvePolicy({
      enqueue: { timeouts: { attempt: 1 } },
      definition: { timeouts: { attempt: 2, grace: 3 }, retry: { attempts: 7 } },
      queue: { timeouts: { heartbeat: 4 }, retry: { attempts: 8, retryFit: "any" } },
      engine: { timeouts: { grace: 5, heartbeat: 6, mode: "discard" }, retention: { completed: 9 } },
    });
    expect(policy).toMatchObject({ attempt: 1, grace: 3, heartbeat: 4, mode: "discard" });
    expect(policy.retry).toMatchObject({ attempts: 7, retryFit: "any", onStall: "retry" });
    expect(policy.retention).toEqual({ ...BUILT_IN_RETENTION, completed: 9 });
    expect(policy.sources).toMatchObject({
      attempt: "enqueue",
      grace: "definition",
      heartbeat: "queue",
      mode: "engine",
      attempts: "definition",
      retryFit: "queue",
      onStall: "built-in",
      retention: "engine",
    });
  });

  it("naming only a duration at enqueue never resets the mode", () => {
    const definition = parseSettings({ timeouts: { attempt: "1m", mode: "discard" } }, "");
    const enqueue = parseSettings({ timeouts: { attempt: "2m" } }, "options");
    expect(resolvePolicy({ enqueue, definition })).toMatchObject({ attempt: 120_000, mode: "discard" });
  });

  it("explain's data names the winner and, in order, all that lost", () => {
    const settings: SettingsBySource = {
      enqueue: { timeouts: { grace: null } },
      queue: { timeouts: { grace: 5_000 } },
      engine: { timeouts: { grace: 9_000 } },
    };
    expect(resolveFields(settings).grace).toEqual({
      value: null,
      source: "enqueue",
      lost: [
        { source: "queue", value: 5_000 },
        { source: "engine", value: 9_000 },
        { source: "built-in", value: 30_000 },
      ],
    });
    expect(resolveFields({}).mode).toEqual({ value: "fail", source: "built-in", lost: [] });
    expect(resolveFields({ engine: { retention: { completed: 1 } } }).retention.completed).toEqual({
      value: 1,
      source: "engine",
      lost: [{ source: "built-in", value: DAY }],
    });
  });

  it("a producer without the definition skips that source for wait and total", () => {
    const queue: PolicySettings = { timeouts: { wait: 1_000, total: 2_000 } };
    const definition: PolicySettings = { timeouts: { wait: 10, total: 20 } };
    const known = resolveBudgets({ definition, queue });
    expect([known.wait.value, known.total.value]).toEqual([10, 20]);
    const { wait, total } = resolveBudgets({ queue });
    expect([wait.value, wait.source, total.value, total.source]).toEqual([1_000, "queue", 2_000, "queue"]);
    expect(wait.lost).toEqual([{ source: "built-in", value: null }]);
  });
});

describe("2 what is fixed when", () => {
  it("total and wait are fixed as instants at enqueue, to the millisecond", () => {
    const row = enqueued({
      settings: { timeouts: { wait: "1234ms", total: "5678ms" } },
      context: { now: T0 + 1 },
    });
    expect([row.waitAt, row.totalAt]).toEqual([T0 + 1 + 1_234, T0 + 1 + 5_678]);
  });

  it("the settings of the queue the job goes to are the ones that count", () => {
    const queueSettings = (queue: string): PolicySettings | undefined =>
      queue === "slow" ? { timeouts: { total: 9_000 } } : undefined;
    expect(enqueued({ context: { queueSettings: queueSettings } }).totalAt).toBeNull();
    expect(enqueued({ enqueue: { queue: "slow" }, context: { queueSettings: queueSettings } }).totalAt).toBe(
      at("9s"),
    );
  });

  it("the other policies are resolved at the first start and kept for later attempts", () => {
    const first = running({ settings: { timeouts: { attempt: "30s" }, retry: { backoff: constant() } } });
    expect(first.policy?.attempt).toBe(30_000);
    const again = step(first, { type: "release" }, at("1s"));
    const reclaimed = step(again, { type: "claim", lease: 10_000, salt: 1 }, at("2s"));
    const redeployed = startEvent({ settings: { timeouts: { attempt: "5m", grace: "0s" } } }, at("2s"));
    const second = step(reclaimed, redeployed, at("2s"));
    expect(second.policy).toEqual(first.policy);
    expect([second.softAt, second.hardAt]).toEqual([at("32s"), at("62s")]);
  });
});

describe("3.6 whose beats count", () => {
  it("where no source names heartbeat, the worker beats for the attempt", () => {
    expect(policyOf().beats).toBe("worker");
    expect(running().stallAt).toBeNull();
    expect(running().heartbeat).toBe(60_000);
  });

  it("where a source names it, only the handler's own beats count", () => {
    expect(policyOf({ timeouts: { heartbeat: "60s" } }).beats).toBe("handler");
    expect(resolvePolicy({ engine: { timeouts: { heartbeat: 60_000 } } }).beats).toBe("handler");
    expect(running({ settings: { timeouts: { heartbeat: "20s" } } }).stallAt).toBe(at("20s"));
  });

  it("over HTTP a job is beaten for by name, so the server's own beats never count", () => {
    expect(policyOf({}, { remote: true }).beats).toBe("handler");
  });
});

describe("1.4 and 3.6 a policy under another kind of worker (2, 4.3)", () => {
  const foreign: WorkerKind = { hears: false, remote: true };

  it("a built-in grace follows the worker, a named one stays", () => {
    expect(policyFor(policyOf(), foreign)).toMatchObject({ grace: 0, hears: false });
    expect(policyFor(policyOf({}, foreign), LOCAL_WORKER)).toMatchObject({ grace: 30_000, hears: true });
    expect(policyFor(policyOf({ timeouts: { grace: "5s" } }), foreign).grace).toBe(5_000);
    expect(policyFor(policyOf({ timeouts: { grace: "unbounded" } }), foreign).grace).toBeNull();
  });

  it("the kind of worker decides who beats, unless a source names heartbeat", () => {
    expect(policyFor(policyOf(), foreign).beats).toBe("handler");
    expect(policyFor(policyOf({}, foreign), LOCAL_WORKER).beats).toBe("worker");
    expect(policyFor(policyOf({ timeouts: { heartbeat: "9s" } }, foreign), LOCAL_WORKER).beats).toBe(
      "handler",
    );
  });

  it("a visibility timeout belongs to the worker that named it", () => {
    const visible = policyOf({}, { ...foreign, visibility: 20_000 });
    expect(policyFor(visible, LOCAL_WORKER)).not.toHaveProperty("visibility");
    expect(policyFor(policyOf(), { ...foreign, visibility: 5_000 }).visibility).toBe(5_000);
  });

  it("under the same kind it is the same policy, and a start writes nothing anew", () => {
    const policy = policyOf();
    expect(policyFor(policy, LOCAL_WORKER)).toBe(policy);
  });
});

const limit = fc.option(fc.option(fc.integer({ min: 1, max: 1e9 }), { nil: null }), { nil: undefined });
const settingsOf = fc.record(
  {
    timeouts: fc.record(
      { attempt: limit, grace: limit, heartbeat: limit, mode: fc.constantFrom("fail", "discard", undefined) },
      { requiredKeys: [] },
    ),
    retry: fc.record({ attempts: fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }) }),
  },
  { requiredKeys: [] },
) as fc.Arbitrary<PolicySettings>;
const settingsBySource: fc.Arbitrary<SettingsBySource> = fc.record(
  { enqueue: settingsOf, definition: settingsOf, queue: settingsOf, engine: settingsOf },
  { requiredKeys: [] },
);

describe("properties of the ladder", () => {
  const reads = {
    attempt: (source: PolicySettings) => source.timeouts?.attempt,
    grace: (source: PolicySettings) => source.timeouts?.grace,
    heartbeat: (source: PolicySettings) => source.timeouts?.heartbeat,
    mode: (source: PolicySettings) => source.timeouts?.mode,
    attempts: (source: PolicySettings) => source.retry?.attempts,
  };

  it("the most specific source that wrote a field wins it, and the rest have lost in order", () => {
    fc.assert(
      fc.property(settingsBySource, (settings) => {
        const fields = resolveFields(settings, LOCAL_WORKER);
        for (const [name, read] of Object.entries(reads)) {
          const field = fields[name as keyof typeof reads];
          const wrote = LADDER.filter((source) => read(settings[source] ?? {}) !== undefined);
          expect([field.source, ...field.lost.map(({ source }) => source)]).toEqual([...wrote, "built-in"]);
          const [first] = wrote;
          if (first) expect(field.value).toBe(read(settings[first] as PolicySettings));
        }
      }),
    );
  });

  it("the order in which settings and fields are written does not matter", () => {
    const reversed = <Value extends object>(value: Value): Value =>
      Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([key, item]) => [key, item && typeof item === "object" ? reversed(item) : item]),
      ) as Value;
    fc.assert(
      fc.property(settingsBySource, (settings) => {
        expect(resolvePolicy(reversed(settings))).toEqual(resolvePolicy(settings));
      }),
    );
  });
});

describe("1.2 total and attempt written together", () => {
  it("total shorter than attempt is refused where both were written, naming both", () => {
    expect(() => parseTimeouts({ total: "1m", attempt: "2m" }, "options.timeouts")).toThrow(
      expect.objectContaining({
        code: "timeouts_contradict",
        field: "options.timeouts.total",
        message:
          'options.timeouts.total: "1m" contradicts another timeout; it is shorter than options.timeouts.attempt (2m): make total at least as long',
      }),
    );
  });

  it("total as long as attempt, or one of them off, is allowed", () => {
    expect(parseTimeouts({ total: "2m", attempt: "2m" }, "timeouts")).toEqual({
      total: 120_000,
      attempt: 120_000,
    });
    expect(parseTimeouts({ total: "1s", attempt: "none" }, "timeouts").attempt).toBeNull();
    expect(parseTimeouts({ total: "none", attempt: "2m" }, "timeouts").total).toBeNull();
  });
});
