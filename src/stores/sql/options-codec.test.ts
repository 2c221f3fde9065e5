import { describe, expect, it } from "vitest";
import type { JobOptions } from "../../core/job/job.ts";
import { optionsText, parseOptions } from "./options-codec.ts";

const RETENTION = { completed: 0, discarded: 1_000, cancelled: 2_000 };
const USUAL: JobOptions = {
  wait: 172_800_000,
  waitFrom: "definition",
  total: 259_200_000,
  totalFrom: "enqueue",
  anchoredAt: 1_795_007_576_019,
  retention: RETENTION,
};

describe("options on disk", () => {
  it.each<[string, JobOptions]>([
    ["those of most jobs", USUAL],
    ["none", {}],
    ["a wait of none, and no total", { wait: 0, waitFrom: "queue" }],
    ["a total alone", { total: 5, totalFrom: "built-in" }],
    ["budgets without their sources", { wait: 7, total: 5 }],
    ["a source alone", { totalFrom: "engine" }],
    ["a retention of dead letters", { retention: { ...RETENTION, deadLetter: 5 } }],
    ["dead letters that are kept", { retention: { ...RETENTION, deadLetter: null } }],
    [
      "everything else",
      {
        ...USUAL,
        settings: { timeouts: { attempt: null, grace: 5 } },
        meta: { w: 1, t: 2, f: "f", a: null, r: [] },
        redact: [["payload", "card"]],
        step: { wakes: [] },
        parentResults: "[1]",
        awaited: true,
      },
    ],
  ])("come back as they were: %s", (_name, options) => {
    expect(parseOptions(optionsText(options))).toStrictEqual(options);
  });

  it("those of most jobs are short", () => {
    expect(optionsText(USUAL)).toBe(
      '{"w":172800000,"t":259200000,"a":1795007576019,"r":[0,1000,2000],"f":"de"}',
    );
  });

  it("those from before the short form are read", () => {
    expect(parseOptions(JSON.stringify(USUAL))).toStrictEqual(USUAL);
  });

  it("what servers look for keeps its name", () => {
    expect(optionsText({ redact: [["payload"]] })).toBe('{"redact":[["payload"]]}');
  });
});
