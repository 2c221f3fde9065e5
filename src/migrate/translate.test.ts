import { describe, expect, it } from "vitest";
import { UUID_V7 } from "../core/ids.ts";
import type { Change, Note } from "./report.ts";
import { applyRules, idOf, type Origin, priorityOf, queueOf, typeOf } from "./translate.ts";

const names = { renames: new Map<string, string>(), into: undefined };
const typeFor = (name: string) => applyRules((changes) => typeOf(name, names, changes));

describe("names of the old system", () => {
  it("stay as they are if curfew accepts them", () => {
    expect(typeFor("card.charge_v2")).toEqual({ value: "card.charge_v2", changes: [] });
  });

  it.each([
    ["sendMail", "send-mail"],
    ["Send Mail", "send-mail"],
    ["mail:send", "mail.send"],
    ["app/jobs/mail", "app.jobs.mail"],
    ["größe", "gr-e"],
  ])("%s becomes %s, and the change is noted", (name, type) => {
    expect(typeFor(name)).toMatchObject({ value: type, changes: [{ reason: "renamed" }] });
  });

  it.each(["tab\there", "", "???", "2fa", "\ud800", "a".repeat(300)])("%j is refused", (name) => {
    expect(typeFor(name)).toMatchObject({ refused: { reason: "name" } });
  });

  it("follow --rename and --into", () => {
    const rules = { renames: new Map([["x y", "mail.send"]]), into: "one" };
    expect(applyRules((changes) => typeOf("x y", rules, changes))).toEqual({
      value: "mail.send",
      changes: [],
    });
    expect(applyRules((changes) => queueOf("\t", rules, changes))).toEqual({ value: "one", changes: [] });
  });

  it("have no underscore in a queue", () => {
    expect(applyRules((changes) => queueOf("my_queue", names, changes))).toMatchObject({ value: "my-queue" });
  });
});

describe("priorities", () => {
  it.each([
    [0, 0, false],
    [-0, 0, false],
    [100, 100, false],
    [101, 100, true],
    [-2_097_152, -100, true],
  ])("%d becomes %d", (given, cut, isNoted) => {
    const changes: Note<Change>[] = [];
    expect(priorityOf(given, changes)).toBe(cut);
    expect(changes.length).toBe(isNoted ? 1 : 0);
  });
});

describe("ids", () => {
  const origin: Origin = {
    engine: "bullmq",
    scope: "bull",
    queue: "mail",
    id: "7",
    created: "1700000000000",
    createdAt: 1_700_000_000_000,
    order: 7,
  };

  it("are the same for the same job and begin with its time", () => {
    expect(idOf(origin)).toBe(idOf({ ...origin }));
    expect(idOf(origin)).toMatch(UUID_V7);
    expect(idOf(origin).slice(0, 13).replace("-", "")).toBe(
      (1_700_000_000_000).toString(16).padStart(12, "0"),
    );
  });

  it.each(["engine", "scope", "queue", "id", "created"] as const)("differ by %s", (field) => {
    expect(idOf({ ...origin, [field]: "other" })).not.toBe(idOf(origin));
  });

  it("sort in the order of the old system", () => {
    const ids = [0, 1, 2, 255, 16_383, 16_384, 100_000].map((order) =>
      idOf({ ...origin, id: String(order), order }),
    );
    expect(ids.toSorted()).toEqual(ids);
  });
});
