import { describe, expect, it } from "vitest";
import { createKey } from "../../src/server/access/auth.ts";
import { createGuard, type GuardOptions } from "../../src/server/access/request-guard.ts";
import { checkContentType } from "../../src/server/http/http-headers.ts";
import { refused } from "./refused.ts";

/** A limit on a clock that stands until it is moved. */
function guard(options: GuardOptions = {}) {
  const clock = { now: 0 };
  const system = { monotonic: () => clock.now, fill: (bytes: Uint8Array) => void bytes.fill(9) };
  return Object.assign(createGuard(options, { system, now: () => clock.now }), { clock });
}

const get = (headers: Record<string, string> = {}) =>
  new Request("http://curfew.test/ojs/v1/jobs", { headers });
const post = (body: string, headers: Record<string, string> = {}) =>
  new Request("http://curfew.test/ojs/v1/jobs", {
    method: "POST",
    body,
    headers: { "content-type": "application/json", ...headers },
  });

describe("the request's id", () => {
  it.each(["a", "0191-abc", "x".repeat(128), "req:1/2+3=@._-"])(
    "a valid request id is echoed: %.20s",
    (id) => {
      expect(guard().open(get({ "x-request-id": id }))).toMatchObject({
        requestId: id,
        headers: { "X-Request-ID": id },
      });
    },
  );

  it.each(["", "x".repeat(129), "a b", "<script>", "a\tb", "ü", '"', "a,b"])(
    "an invalid request id is replaced: %.20s",
    (id) => {
      const { requestId } = guard().open(get({ "x-request-id": id }));
      expect(requestId).toMatch(/^req_[A-Za-z0-9_-]{12}_1$/);
    },
  );

  it("is another one each time", () => {
    const { open } = guard();
    expect(open(get()).requestId).not.toBe(open(get()).requestId);
  });
});

describe("headers of every reply", () => {
  it("keep browsers from sniffing, framing, keeping or leaking it", () => {
    expect(guard().open(get()).headers).toEqual({
      "X-Content-Type-Options": "nosniff",
      "X-Frame-Options": "DENY",
      "Referrer-Policy": "no-referrer",
      "Cross-Origin-Resource-Policy": "same-origin",
      "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
      "Cache-Control": "no-store",
      "X-Request-ID": expect.any(String),
    });
  });

  it("are made for one call: what a route adds is not seen by the next", () => {
    const { open } = guard();
    open(get()).headers.Location = "/x";
    expect(open(get()).headers).not.toHaveProperty("Location");
  });
});

describe("cross-origin calls", () => {
  const origin = "https://jobs.example.org";

  it("cross-origin calls and preflights are refused by default", () => {
    const { open, preflight } = guard();
    const request = new Request("http://x/", {
      method: "OPTIONS",
      headers: { origin, "access-control-request-method": "POST" },
    });
    const call = open(request);
    expect(Object.keys(call.headers).filter((name) => /access-control/i.test(name))).toEqual([]);
    expect(preflight(request, call)).toBeNull();
  });

  it("cross-origin calls are allowed from listed origins only", () => {
    const { open, preflight } = guard({ cors: [origin] });
    const ask = (from: string) =>
      new Request("http://x/", {
        method: "OPTIONS",
        headers: { origin: from, "access-control-request-method": "POST" },
      });
    const reply = preflight(ask(origin), open(ask(origin)));
    expect(reply?.status).toBe(204);
    expect(reply?.headers.get("access-control-allow-origin")).toBe(origin);
    const allowed = reply?.headers.get("access-control-allow-headers");
    for (const name of ["Authorization", "X-Audit-Reason"]) expect(allowed).toContain(name);
    expect(reply?.headers.get("access-control-allow-credentials")).toBeNull();
    expect(reply?.headers.get("vary")).toBe("Origin");
    for (const other of [
      "https://evil.example",
      `${origin}.evil.example`,
      "null",
      "http://jobs.example.org",
    ]) {
      expect(preflight(ask(other), open(ask(other)))).toBeNull();
      expect(open(get({ origin: other })).headers).not.toHaveProperty("Access-Control-Allow-Origin");
      expect(open(get({ origin: other })).headers).toHaveProperty("Vary", "Origin");
    }
  });

  it.each(["*", "jobs.example.org", "https://jobs.example.org/", "https://a.b/path"])(
    "refuse the origin %s",
    (bad) => {
      expect(() => guard({ cors: [bad] })).toThrow(/cors: /);
    },
  );

  it("a cross-origin call of a browser is refused without keys, though the page could not read the reply", () => {
    const { admit } = guard({ cors: [origin] });
    const from = (given: string) => post("{}", { origin: given, host: "127.0.0.1:8080" });
    expect(refused(() => admit(from("https://evil.example"), "enqueue"))).toMatchObject({ status: 403 });
    expect(refused(() => admit(from("null"), "enqueue"))).toMatchObject({ status: 403 });
    expect(refused(() => admit(from("http://127.0.0.1:9999"), "enqueue"))).toMatchObject({ status: 403 });
    expect(admit(from(origin), "enqueue")).toMatchObject({ role: "admin" });
    expect(admit(from("http://127.0.0.1:8080"), "enqueue")).toMatchObject({ role: "admin" });
    expect(admit(post("{}"), "enqueue")).toMatchObject({ role: "admin" });
  });
});

describe("the content type", () => {
  it.each([
    null,
    "application/json",
    "application/openjobspec+json",
    "Application/JSON; charset=UTF-8",
    'application/openjobspec+json;charset="utf-8"',
    "application/json; profile=x",
  ])("%s is served", (type) => {
    expect(() => checkContentType(type)).not.toThrow();
  });

  it.each([
    "",
    "text/plain",
    "application/jsonp",
    "application/json; charset=latin1",
    "application/xml",
    "multipart/form-data",
    "x".repeat(10_000),
  ])("%.40s is not", (type) => {
    const error = refused(() => checkContentType(type));
    expect(error).toMatchObject({ status: 400, code: "invalid_request" });
    expect(error.message.length).toBeLessThan(250);
  });

  it("is asked for only where there is a body", async () => {
    const { body } = guard();
    expect(await body(post("", { "content-type": "text/plain" }))).toBeUndefined();
    await expect(body(post("{}", { "content-type": "text/plain" }))).rejects.toMatchObject({ status: 400 });
    expect(await body(post('{"a":1}', { "content-type": "application/json" }))).toEqual({ a: 1 });
  });
});

it("a compressed body is refused", async () => {
  const { body } = guard();
  await expect(body(post("{}", { "content-encoding": "gzip" }))).rejects.toMatchObject({
    status: 400,
    message: 'Content-Encoding: "gzip" is not served; send the body as it is',
  });
  expect(await body(post("{}", { "content-encoding": "identity" }))).toEqual({});
});

describe("the guard", () => {
  const keyOf = (name: string, role: "producer" | "admin", rate?: number) => {
    const { key, hash } = createKey();
    return { key, entry: { name, role, hash, ...(rate !== undefined && { rate }) } };
  };

  it("the guard asks for a key unless the route is open", () => {
    const { key, entry } = keyOf("web", "producer");
    const { admit, isOpen } = guard({ keys: [entry] });
    expect(isOpen).toBe(false);
    expect(guard().isOpen).toBe(true);
    expect(refused(() => admit(get(), "read")).status).toBe(401);
    expect(() => admit(get(), "open")).not.toThrow();
    const withKey = get({ authorization: `Bearer ${key}`, origin: "https://elsewhere.example" });
    expect(admit(withKey, "enqueue")).toMatchObject({ name: "web", role: "producer" });
    expect(refused(() => admit(withKey, "operate")).status).toBe(403);
  });

  it("a caller above its rate gets 429 with Retry-After", () => {
    const [web, ops] = [keyOf("web", "producer"), keyOf("ops", "admin", 1)];
    const { admit, clock } = guard({ keys: [web.entry, ops.entry], limits: { rate: 2 } });
    const by = ({ key }: { key: string }) => admit(get({ authorization: `Bearer ${key}` }), "read");
    by(web);
    by(web);
    const error = refused(() => by(web));
    expect(error).toMatchObject({
      status: 429,
      code: "rate_limited",
      more: { retryable: true, headers: { "Retry-After": "1" } },
    });
    by(ops);
    expect(refused(() => by(ops)).status).toBe(429);
    clock.now += 500;
    by(web);
    expect(refused(() => by(web)).status).toBe(429);
    clock.now += 500;
    by(ops);
  });

  it("two keys of one name share one rate limit", () => {
    const [old, next] = [keyOf("web", "producer"), keyOf("web", "producer")];
    const { admit } = guard({ keys: [old.entry, next.entry], limits: { rate: 1 } });
    admit(get({ authorization: `Bearer ${old.key}` }), "read");
    expect(refused(() => admit(get({ authorization: `Bearer ${next.key}` }), "read")).status).toBe(429);
  });

  it("bounds the body before it is parsed", async () => {
    const { body } = guard({ limits: { body: 20, depth: 2, keys: 2 } });
    await expect(body(post(`"${"x".repeat(30)}"`))).rejects.toMatchObject({ status: 413 });
    await expect(body(post("[[[]]]"))).rejects.toMatchObject({ status: 400, code: "invalid_payload" });
    await expect(body(post("{"))).rejects.toMatchObject({ status: 400, code: "invalid_payload" });
    expect(await body(post("[[]]"))).toEqual([[]]);
  });
});
