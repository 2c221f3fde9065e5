import { describe, expect, it } from "vitest";
import { ownHosts } from "./loopback.ts";

describe("names of this machine", () => {
  it("refuses a foreign Host header, also after one of its own", () => {
    const isOwnHost = ownHosts();
    expect(isOwnHost("evil.example:8080")).toBe(false);
    expect(isOwnHost("localhost:8080")).toBe(true);
    expect(isOwnHost("localhost:8080")).toBe(true);
    expect(isOwnHost("evil.example:8080")).toBe(false);
    expect(isOwnHost("127.0.0.1:8080")).toBe(true);
    expect(isOwnHost("[::1]:8080")).toBe(true);
  });

  it("refuses an empty Host header before and after one of its own", () => {
    const isOwnHost = ownHosts();
    expect(isOwnHost("")).toBe(false);
    expect(isOwnHost("localhost")).toBe(true);
    expect(isOwnHost("")).toBe(false);
  });
});
