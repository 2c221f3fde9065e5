import { describe, expect, it } from "vitest";
import type { Policy } from "../../core/job/job.ts";
import { parseSettings, resolvePolicy } from "../../core/job/policy/policy.ts";
import { delays } from "../../core/job/policy/retry.ts";
import { parsePolicy, policyText } from "./policy-codec.ts";

const usual = resolvePolicy({});
const odd: Policy = resolvePolicy(
  {
    enqueue: parseSettings({ timeouts: { attempt: "none", grace: "unbounded", mode: "discard" } }, ""),
    definition: parseSettings({ retry: { backoff: delays(["1s", "5s"]), except: ["a.*"] } }, ""),
    queue: parseSettings({ timeouts: { heartbeat: "5s" }, retention: { completed: "0s" } }, ""),
    engine: parseSettings({ retry: { attempts: 9, onExhausted: "dead-letter" } }, ""),
  },
  { remote: true, hears: false, worker: "w", visibility: 4_000 },
);

describe("policies on disk", () => {
  it.each([
    ["the usual one", usual],
    ["one that differs in all", odd],
  ])("come back as they were: %s", (_name, policy) => {
    expect(parsePolicy(policyText(policy))).toStrictEqual(policy);
  });

  it("a common policy is short", () => {
    expect(policyText(usual)).toBe('{"retry":{},"letters":"bbbbbbbbbbb"}');
  });

  it("a policy from before the short form is read", () => {
    expect(parsePolicy(JSON.stringify(odd))).toStrictEqual(odd);
  });
});
