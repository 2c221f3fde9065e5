import { describe, expect, it } from "vitest";
import { forbiddenKind, isIn, readAddress, readRange } from "./address-range.ts";
import { allowsAddress, allowsHost, parseAllowList } from "./endpoint.ts";

describe("addresses that must not be called", () => {
  it.each([
    ["0.0.0.0", "unspecified"],
    ["10.255.0.1", "private"],
    ["100.64.0.1", "shared"],
    ["100.127.255.255", "shared"],
    ["127.0.0.1", "loopback"],
    ["127.255.255.255", "loopback"],
    ["169.254.169.254", "metadata"],
    ["168.63.129.16", "metadata"],
    ["172.16.0.1", "private"],
    ["172.31.255.255", "private"],
    ["192.168.1.1", "private"],
    ["192.0.0.192", "reserved"],
    ["198.18.0.1", "benchmarking"],
    ["224.0.0.1", "multicast"],
    ["255.255.255.255", "reserved"],
    ["::", "not a public"],
    ["::1", "loopback"],
    ["::ffff:127.0.0.1", "loopback"],
    ["::ffff:7f00:1", "loopback"],
    ["::ffff:169.254.169.254", "metadata"],
    ["::ffff:8.8.8.8", "in the form of IPv6"],
    ["::127.0.0.1", "not a public"],
    ["64:ff9b::7f00:1", "NAT64"],
    ["64:ff9b:1::1", "not a public"],
    ["2002:7f00:1::", "6to4"],
    ["fd00:ec2::254", "unique local"],
    ["fe80::1", "link-local"],
    ["fe80::1%eth0", "link-local"],
    ["ff02::1", "multicast"],
    ["2001::1", "Teredo"],
    ["2001:db8::1", "documentation"],
    ["100::1", "not a public"],
    ["localhost", "not an address"],
    ["0177.0.0.1", "not an address"],
    ["1.2.3", "not an address"],
    ["", "not an address"],
  ])("%s is %s", (address, kind) => {
    expect(forbiddenKind(address)).toContain(kind);
  });

  it.each([
    "8.8.8.8",
    "1.1.1.1",
    "168.63.129.15",
    "168.63.129.17",
    "172.32.0.1",
    "100.128.0.1",
    "192.167.0.1",
    "2606:4700::1111",
    "2a00:1450::1",
  ])("%s is public", (address) => {
    expect(forbiddenKind(address)).toBeNull();
  });

  it("every address of a forbidden range is forbidden, and its neighbours are not", () => {
    const text = (number: number) => [24, 16, 8, 0].map((bits) => (number >>> bits) & 255).join(".");
    for (const [from, to] of [
      [0x0a_00_00_00, 0x0a_ff_ff_ff],
      [0x64_40_00_00, 0x64_7f_ff_ff],
      [0xac_10_00_00, 0xac_1f_ff_ff],
      [0xc0_a8_00_00, 0xc0_a8_ff_ff],
    ] as const) {
      for (const inside of [from, from + 1, Math.floor((from + to) / 2), to])
        expect(forbiddenKind(text(inside)), text(inside)).not.toBeNull();
      for (const outside of [from - 1, to + 1])
        expect(forbiddenKind(text(outside)), text(outside)).toBeNull();
    }
  });
});

describe("an allow-list", () => {
  it("has hosts, suffixes and ranges, and refuses what is none", () => {
    const allowed = parseAllowList(
      ["Hooks.Internal", "*.example.internal", "10.1.0.0/16", "::1", "fd00::/8"],
      "allow",
    );
    expect(allowsHost(allowed, "hooks.internal")).toBe(true);
    expect(allowsHost(allowed, "a.b.example.internal")).toBe(true);
    expect(allowsHost(allowed, "example.internal")).toBe(false);
    expect(allowsHost(allowed, "evil-example.internal")).toBe(false);
    expect(allowsAddress(allowed, "10.1.255.1")).toBe(true);
    expect(allowsAddress(allowed, "10.2.0.1")).toBe(false);
    expect(allowsAddress(allowed, "::1")).toBe(true);
    for (const entry of ["10.0.0.0/33", "10.0.0", "a b", "", "http://x", "::/129", "1.2.3.4/8/9"])
      expect(() => parseAllowList([entry], "allow"), entry).toThrow(/allow\[0\]/);
  });

  it("compares the first bits of an address", () => {
    const range = readRange("192.168.128.0/17");
    const has = (text: string) => range && isIn(range, readAddress(text) as number[]);
    expect([has("192.168.128.1"), has("192.168.255.255"), has("192.168.127.255")]).toEqual([
      true,
      true,
      false,
    ]);
    expect(isIn(readRange("0.0.0.0/0") as never, readAddress("8.8.8.8") as number[])).toBe(true);
    expect(isIn(readRange("0.0.0.0/0") as never, readAddress("2606::1") as number[])).toBe(false);
  });
});
