import { describe, expect, it } from "vitest";
import { namesOf, tenantOf } from "../../core/tenant/tenant-name.ts";
import { EventCursors } from "./event-cursors.ts";
import { TenantScope } from "./tenant-scope.ts";

const ID = "018f0000-0000-7000-8000-00000000abcd";

describe("the scope of a tenant", () => {
  const [a, b] = [new TenantScope("a", "secret"), new TenantScope("b", "secret")];

  it("turns names into stored names that no other tenant has, and back", () => {
    expect(a.unname(a.name("mail"))).toBe("mail");
    expect([tenantOf(a.name("mail")), tenantOf("mail")]).toEqual(["a", undefined]);
    expect([a.owns(a.name("mail")), a.owns(b.name("mail")), a.owns("mail")]).toEqual([true, false, false]);
    // One tenant's name may begin with another's.
    expect(a.owns(new TenantScope("ab", "secret").name("mail"))).toBe(false);
    const { from, to } = namesOf("a");
    for (const [name, isWithin] of [
      [a.name("mail"), true],
      [a.name("\u{10ffff}"), true],
      [new TenantScope("a.b", "secret").name("mail"), false],
      [b.name(""), false],
      ["mail", false],
    ] as const)
      expect([name, name >= from && name < to]).toEqual([name, isWithin]);
  });

  it("masks ids: they stay UUIDs in the order of their time, and differ between tenants and secrets", () => {
    expect(a.id(a.id(ID))).toBe(ID);
    expect(a.id(ID).slice(0, 24)).toBe(ID.slice(0, 24));
    expect(a.id(ID)).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(new Set([ID, a.id(ID), b.id(ID), new TenantScope("a", "other").id(ID)]).size).toBe(4);
    expect(a.cursor(a.cursor(`12345.${ID}`))).toBe(`12345.${ID}`);
  });

  it("keeps the records that stores read by name under a stored name, and the others under a kind of the tenant", () => {
    for (const key of [
      ["pause", "mail"],
      ["cron", "c"],
      ["worker", "w-1"],
    ] as const) {
      const stored = a.recordKey(key);
      expect(stored).not.toEqual(key);
      expect(stored).not.toEqual(b.recordKey(key));
      expect(a.record({ key: stored, version: 1, wakeAt: null, body: null }).key).toEqual(key);
    }
  });
});

describe("cursors of events", () => {
  const cursors = new EventCursors("secret");

  it("lead back to their position, and show neither it nor the distance of two", () => {
    const shown = ["1", "2", "3", "99", "7.12", "7.12-3", "123456789012345"];
    for (const cursor of shown) {
      const hidden = cursors.hide(cursor);
      expect(hidden).toMatch(/^\d{1,18}(\.\d{1,18})?(-\d{1,6})?$/);
      expect(cursors.show(hidden)).toBe(cursor);
    }
    expect(cursors.hide("0")).toBe("0");
    const steps = Array.from({ length: 100 }, (_, at) => Number(cursors.hide(String(at + 1))));
    const gaps = steps.slice(1).map((value, at) => value - (steps[at] as number));
    expect(new Set(gaps).size).toBe(gaps.length);
    expect(cursors.hide("5")).not.toBe(new EventCursors("other").hide("5"));
  });
});
