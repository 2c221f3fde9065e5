import { describe, expect, it } from "vitest";
import { unpacked } from "./packed-row.ts";

const OPTIONS = '{"meta":{"a":"1,2"}}';

function row(shared: string, ...more: unknown[]): unknown[] {
  return ["id", "{}", shared, null, ...more];
}

describe("rows of a claim", () => {
  it("are read from one text", () => {
    expect(unpacked(row(`2097153,1,5,9007199254740991,,8\u001f${OPTIONS}\u001fmail.send`))).toEqual([
      ...[
        "id",
        "mail.send",
        2_097_153,
        1,
        5,
        "{}",
        OPTIONS,
        Number.MAX_SAFE_INTEGER,
        null,
        8,
        null,
        undefined,
      ],
    ]);
  });

  it("may have no options, and any type", () => {
    const shared = "1,2,3,4,5,\u001f\u001fa,b\u001fc";
    expect(unpacked(row(shared, "key"))).toEqual([
      ...["id", "a,b\u001fc", 1, 2, 3, "{}", null, 4, 5, null, null, "key"],
    ]);
  });

  it("differ when their texts differ", () => {
    const ranks = [1, 1, 2, 1].map((rank) => unpacked(row(`1,1,1,${rank},,\u001f\u001ft`))[7]);
    expect(ranks).toEqual([1, 1, 2, 1]);
  });
});
