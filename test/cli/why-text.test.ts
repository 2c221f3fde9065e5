import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { inCommands, whyText, withCommands } from "../../src/cli/output/why-text.ts";

const WHY = join(import.meta.dirname, "../../src/core/job/why");

describe("the advice of why on the command line", () => {
  it.each([
    ['Call engine.retry("j-1").', "Run curfew retry j-1."],
    ['Mend the cause, then call engine.retry("j-1").', "Mend the cause, then run curfew retry j-1."],
    ['Call engine.cancel("j-1").', "Run curfew cancel j-1."],
    ['Call engine.activate("j-1").', "Run curfew activate j-1."],
    ['To run it now, call engine.job("j-1").runNow().', "To run it now, run curfew run j-1."],
    [
      'Wait, call engine.extend("j-1", …) if it needs longer, or engine.cancel("j-1").',
      "Wait, run curfew extend j-1 --attempt <duration> if it needs longer, or curfew cancel j-1.",
    ],
    [
      'Call engine.extend("j-1", { attempt: "30m" }) to give it a limit.',
      "Run curfew extend j-1 --attempt 30m to give it a limit.",
    ],
    [
      'Call engine.extend("j-1", { total }) if that is too soon.',
      "Run curfew extend j-1 --total <duration> if that is too soon.",
    ],
    [
      'Wait, or call engine.limits.put("mail", { rate: … }) to let more of them start.',
      "Wait, or run curfew limits set mail --rate <count/time> to let more of them start.",
    ],
    [
      'Wait, or call engine.limits.put("customer 42", …) to let more of them run.',
      "Wait, or run curfew limits set 'customer 42' --concurrency <count> to let more of them run.",
    ],
    [
      'Wait, or call engine.queues.configure("mail", { concurrency }) with more.',
      "Wait, or run curfew queues limit mail --concurrency <count> with more.",
    ],
    ['Call engine.queues.resume("mail").', "Run curfew queues resume mail."],
    [
      "Call engine.maintenance.end() when the work is done.",
      "Run curfew maintenance off when the work is done.",
    ],
    [
      "Make it faster: engine.advise() says what its runs need.",
      "Make it faster: curfew advise says what its runs need.",
    ],
    ["Somebody cancelled it; engine.audit says who.", "Somebody cancelled it; curfew audit says who."],
    [
      "Give it a higher priority with handle.prioritise().",
      "Give it a higher priority with curfew extend j-9 --priority <number>.",
    ],
    ["Nothing needs to be done.", "Nothing needs to be done."],
  ])("%s", (text, expected) => {
    expect(inCommands(text, "j-9")).toBe(expected);
  });

  it("knows every call of the library that the texts in core name", () => {
    const sources = readdirSync(WHY).map((name) => readFileSync(join(WHY, name), "utf8"));
    const calls = sources.flatMap((text) =>
      [...text.matchAll(/\b(?:engine|handle|worker)\.[a-z][\w.]*(?:\([^)]*\)(?:\.\w+\(\))?)?/g)].map(
        ([call]) => call,
      ),
    );
    const asGiven = calls
      .filter((call) => /^(?:engine|handle)\./.test(call))
      // The source has placeholders where the texts have ids and names.
      .map((call) => call.replaceAll(/\$\{[^}]*\}/g, "x-1"));
    expect(asGiven.length).toBeGreaterThan(10);
    expect(asGiven.filter((call) => /engine\.|handle\./.test(inCommands(call, "j-9")))).toEqual([]);
  });

  it("has the command beside the text, for programs", () => {
    const action = (name: string, target: string | null, text: string) => ({
      action: { name, target, text },
    });
    const why = {
      job_id: "j-9",
      reasons: [
        action("raise-limit", "k", 'Wait, or call engine.limits.put("k", …) to let more of them run.'),
        action("extend", "j-9", 'Call engine.extend("j-9", …) if it needs longer, or engine.cancel("j-9").'),
        action("start-worker", "mail", 'Start a worker that takes queue "mail".'),
        action("wait", null, "Nothing needs to be done."),
      ],
    };
    const { reasons } = withCommands(why) as { reasons: { action: { command: string | null } }[] };
    expect(reasons.map((reason) => reason.action.command)).toEqual([
      "curfew limits set k --concurrency <count>",
      "curfew extend j-9 --attempt <duration>",
      "curfew work <module> --queues mail",
      null,
    ]);
  });

  it("quotes a name that a shell would split", () => {
    expect(inCommands('Call engine.queues.resume("it\'s").', "j")).toBe(
      "Run curfew queues resume 'it'\\''s'.",
    );
  });

  it("names a command to look further where the advice has none", () => {
    const reason = {
      sentence: 'No live worker takes queue "mail".',
      until: null,
      action: { name: "start-worker", target: "mail", text: 'Start a worker that takes queue "mail".' },
    };
    expect(whyText({ job_id: "j-9", state: "available", reasons: [reason] }, 0)).toBe(
      [
        "Job j-9 is available.",
        '1. No live worker takes queue "mail".',
        '   → Start a worker that takes queue "mail".',
        "     curfew work <module> --queues mail",
      ].join("\n"),
    );
  });
});
