import { describe, expect, it } from "vitest";
import { at, enqueued, retryable, running, type Said } from "../../../../test/support/rows.ts";
import { type ExplainedField, explainJob } from "./explain.ts";
import { parseSettings } from "./policy.ts";
import { constant } from "./retry.ts";

const SAID: Said = {
  enqueue: { timeouts: { attempt: "2m" } },
  settings: { timeouts: { attempt: "1m", total: "1h", grace: "5s", mode: "discard" } },
};
const SETTINGS = {
  definition: parseSettings(SAID.settings ?? {}, ""),
  engine: parseSettings({ timeouts: { grace: "9s" }, retry: { attempts: 7 } }, ""),
};

function fieldOf(fields: readonly ExplainedField[], name: ExplainedField["field"]) {
  return fields.find(({ field }) => field === name);
}

describe("2 explain", () => {
  it("says for every field which settings won and what lost", () => {
    const { fields, fixed } = explainJob(enqueued(SAID), SETTINGS, at("0s"));
    expect(fixed).toBe(false);
    expect(fieldOf(fields, "attempt")).toEqual({
      field: "attempt",
      value: "2m",
      source: "enqueue",
      lost: [
        { source: "definition", value: "60s" },
        { source: "built-in", value: "30m" },
      ],
    });
    expect(fieldOf(fields, "grace")).toMatchObject({ value: "5s", source: "definition" });
    expect(fieldOf(fields, "mode")).toMatchObject({ value: "discard", source: "definition" });
    expect(fieldOf(fields, "attempts")).toMatchObject({ value: "7", source: "engine" });
    expect(fieldOf(fields, "total")).toMatchObject({ value: "1h", source: "definition" });
    expect(fieldOf(fields, "wait")).toMatchObject({ value: "none", source: "built-in" });
  });

  it("names every field once", () => {
    const names = explainJob(enqueued(), {}, at("0s")).fields.map(({ field }) => field);
    expect([...names].sort()).toEqual(
      [
        ...["wait", "total", "attempt", "grace", "heartbeat", "mode", "attempts", "backoff", "except"],
        ...["retryFit", "onStall", "onExhausted", "retention"],
      ].sort(),
    );
  });

  it("gives the instants a start now would have, before the first attempt", () => {
    const { instants } = explainJob(enqueued(SAID), SETTINGS, at("10s"));
    expect(instants).toMatchObject({ soft: at("130s"), hard: at("135s"), total: at("1h"), wait: null });
    const later = enqueued({ ...SAID, enqueue: { ...SAID.enqueue, delay: "5m" } });
    expect(explainJob(later, SETTINGS, at("10s")).instants).toMatchObject({ due: at("5m"), soft: at("7m") });
  });

  it("gives the real ones while it runs, and keeps what the first start fixed", () => {
    const { instants, fixed, fields } = explainJob(running(SAID), {}, at("100s"));
    expect(fixed).toBe(true);
    expect(instants).toMatchObject({ soft: at("2m"), hard: at("125s") });
    expect(fieldOf(fields, "grace")).toMatchObject({ value: "5s", source: "definition" });
    const between = explainJob(retryable(SAID), {}, at("10s"));
    expect([between.fixed, between.instants.soft]).toEqual([true, at("130s")]);
  });

  it("warns where limits work against each other", () => {
    const warnings = (said: Said) =>
      explainJob(
        enqueued(said),
        { definition: parseSettings(said.settings ?? {}, "") },
        at("0s"),
      ).warnings.join("\n");
    expect(warnings({ settings: { timeouts: { attempt: "10s" } } })).toBe("");
    const slow = { timeouts: { total: "30s" }, retry: { backoff: constant({ first: "20s" }) } } as const;
    expect(warnings({ settings: slow })).toContain(
      "total (30s) is shorter than the backoffs of 3 attempts (40s)",
    );
    expect(warnings({ settings: { timeouts: { total: "1m" } } })).toContain(
      "attempt (30m) is longer than total (60s)",
    );
    expect(warnings({ settings: { timeouts: { grace: "2m" } } })).toContain(
      "grace (2m) is longer than heartbeat",
    );
    const endless = { timeouts: { attempt: "none", heartbeat: "none" } } as const;
    expect(warnings({ settings: endless })).toContain("no limit ends an attempt by force");
    expect(warnings({ settings: { timeouts: { heartbeat: "5s" } } })).toContain("must call beat()");
  });

  it("reads as text", () => {
    const text = explainJob(running(SAID), SETTINGS, at("1s")).toString();
    expect(text).toContain("Policies were fixed at the first start.");
    expect(text).toMatch(/^attempt +2m +by enqueue \(definition said 60s, built-in said 30m\)$/m);
    expect(text).toMatch(/^backoff +exponential from 1s, x2, at most 5m, jitter +by built-in$/m);
    expect(text).toMatch(/^except +nothing +by built-in$/m);
    expect(text).toMatch(/^wait +never$/m);
    expect(text).toMatch(/^stall +once its worker has been silent for the heartbeat$/m);
  });
});
