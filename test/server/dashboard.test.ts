import { afterEach, describe, expect, it } from "vitest";
import { createKey, Keyring } from "../../src/server/access/auth.ts";
import { type CurfewServer, createServer, type ServerOptions } from "../../src/server/app.ts";
import { openTestEngine, type TestEngine } from "../../src/testing/index.ts";

let test: TestEngine | undefined;
afterEach(async () => {
  await test?.close();
  test = undefined;
});

async function open(
  options: ServerOptions = {},
): Promise<(path: string, init?: RequestInit) => Promise<Response>> {
  test = await openTestEngine();
  const opened = test;
  const server: CurfewServer = createServer(opened.engine, options);
  return async (path, init) => {
    let isDone = false;
    const request = new Request(`http://jobs.example${path}`, init);
    const reply = Promise.resolve(server.fetch(request)).finally(() => (isDone = true));
    while (!isDone) await opened.system.advance(10);
    return reply;
  };
}

const OWN = {
  "X-Curfew-Dashboard": "1",
  "Sec-Fetch-Site": "same-origin",
  "Content-Type": "application/json",
};
const admin = createKey();
const reader = createKey();
const KEYS = [
  { name: "ana", role: "admin", hash: admin.hash },
  { name: "rob", role: "read-only", hash: reader.hash },
] as const;

async function logIn(ask: Awaited<ReturnType<typeof open>>, key: string): Promise<string> {
  const reply = await ask("/ojs/v1/session", { method: "POST", headers: OWN, body: JSON.stringify({ key }) });
  expect(reply.status).toBe(200);
  return (reply.headers.get("set-cookie") ?? "").split(";")[0] as string;
}

describe("the dashboard's pages", () => {
  it("pages have a policy against inline code and are not cached", async () => {
    const ask = await open();
    for (const path of ["/", "/jobs", "/jobs/01a1"]) {
      const page = await ask(path);
      expect(page.headers.get("content-type")).toContain("text/html");
      const policy = page.headers.get("content-security-policy") ?? "";
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("script-src 'self'");
      expect(policy).not.toContain("unsafe");
      expect(page.headers.get("cache-control")).toBe("no-store");
      expect(page.headers.get("x-content-type-options")).toBe("nosniff");
      expect(page.headers.get("x-frame-options")).toBe("DENY");
    }
  });

  it("an unknown API path is still a JSON error", async () => {
    const ask = await open();
    const reply = await ask("/ojs/v1/nothing");
    expect(reply.status).toBe(404);
    expect(await reply.json()).toMatchObject({ error: { code: "not_found" } });
    expect((await ask("/assets/none.js")).status).toBe(404);
    expect((await ask("/assets/../../package.json")).headers.get("content-type")).not.toContain("octet");
  });

  it("are not served where they are switched off", async () => {
    const ask = await open({ dashboard: false });
    expect((await ask("/")).status).toBe(404);
    expect((await ask("/ojs/v1/session")).status).toBe(200);
  });

  it("are served under a path, with the interface beside them", async () => {
    const ask = await open({ dashboard: { base: "/admin/jobs" } });
    expect((await ask("/")).status).toBe(404);
    const short = await ask("/admin/jobs");
    expect([short.status, short.headers.get("location")]).toEqual([308, "/admin/jobs/"]);
    const page = await ask("/admin/jobs/jobs/x");
    expect(page.headers.get("content-type")).toContain("text/html");
    expect((await ask("/admin/jobs/ojs/v1/session")).status).toBe(200);
    expect((await ask("/ojs/v1/session")).status).toBe(200);
  });

  it.each(["admin", "/a b", "/../x", "/ojs/x", "//evil.example/"])("refuse the base %s", async (base) => {
    await expect(open({ dashboard: { base } })).rejects.toThrow(/dashboard\.base/);
  });
});

describe("a login", () => {
  it("is a cookie that no script can read and that is not the key", async () => {
    const ask = await open({ keys: KEYS, dashboard: { base: "/admin" } });
    const reply = await ask("/admin/ojs/v1/session", {
      method: "POST",
      headers: { ...OWN, Origin: "https://jobs.example" },
      body: JSON.stringify({ key: admin.key }),
    });
    const cookie = reply.headers.get("set-cookie") ?? "";
    expect(cookie).toMatch(
      /^curfew_session=[\w-]{43}; Path=\/admin\/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure$/,
    );
    expect(cookie).not.toContain(admin.key.slice(7));
    expect(await reply.json()).toMatchObject({
      name: "ana",
      role: "admin",
      authentication: "session",
      can_log_out: true,
    });
  });

  it("a session has the rights of its key, for the dashboard's own pages only", async () => {
    const ask = await open({ keys: KEYS });
    const cookie = await logIn(ask, admin.key);
    expect((await ask("/ojs/v1/jobs", { headers: { cookie } })).status).toBe(200);
    const pause = (headers: Record<string, string>) =>
      ask("/ojs/v1/queues/mail/pause", { method: "POST", body: "{}", headers: { cookie, ...headers } });
    expect((await pause({ "Content-Type": "application/json" })).status).toBe(403);
    expect((await pause({ ...OWN, "Sec-Fetch-Site": "cross-site" })).status).toBe(403);
    expect((await pause({ ...OWN, "Sec-Fetch-Site": "same-site" })).status).toBe(403);
    expect(
      (await pause({ "X-Curfew-Dashboard": "1", Origin: "http://evil.example", Host: "jobs.example" }))
        .status,
    ).toBe(403);
    expect((await pause(OWN)).status).toBe(200);
  });

  it("has the role of its key", async () => {
    const ask = await open({ keys: KEYS });
    const cookie = await logIn(ask, reader.key);
    const who = (await (await ask("/ojs/v1/session", { headers: { cookie } })).json()) as {
      rights: string[];
    };
    expect(who).toMatchObject({ name: "rob", role: "read-only", rights: ["read"] });
    const reply = await ask("/ojs/v1/queues/mail/pause", {
      method: "POST",
      body: "{}",
      headers: { cookie, ...OWN },
    });
    expect(reply.status).toBe(403);
  });

  it("ends when somebody logs out, and after 12 hours", async () => {
    const ask = await open({ keys: KEYS });
    const left = await logIn(ask, admin.key);
    await ask("/ojs/v1/session", { method: "DELETE", headers: { cookie: left, ...OWN } });
    expect((await ask("/ojs/v1/jobs", { headers: { cookie: left } })).status).toBe(401);
    const old = await logIn(ask, admin.key);
    await test?.advance("11h");
    expect((await ask("/ojs/v1/jobs", { headers: { cookie: old } })).status).toBe(200);
    await test?.advance("61m");
    expect((await ask("/ojs/v1/jobs", { headers: { cookie: old } })).status).toBe(401);
  });

  it("a session ends when its key is removed, and only then", async () => {
    const keyring = new Keyring(KEYS, { now: () => 0 });
    const ask = await open({ keys: keyring });
    const [ana, rob] = [await logIn(ask, admin.key), await logIn(ask, reader.key)];
    keyring.replace([KEYS[0]]);
    expect((await ask("/ojs/v1/jobs", { headers: { cookie: rob } })).status).toBe(401);
    expect((await ask("/ojs/v1/jobs", { headers: { cookie: ana } })).status).toBe(200);
  });

  it("is refused for a wrong key, and for a page of another site", async () => {
    const ask = await open({ keys: KEYS });
    const body = JSON.stringify({ key: createKey().key });
    expect((await ask("/ojs/v1/session", { method: "POST", headers: OWN, body })).status).toBe(401);
    const foreign = { ...OWN, "Sec-Fetch-Site": "cross-site" };
    const good = JSON.stringify({ key: admin.key });
    const reply = await ask("/ojs/v1/session", { method: "POST", headers: foreign, body: good });
    expect([reply.status, reply.headers.get("set-cookie")]).toEqual([403, null]);
  });
});

describe("the application's own authorize", () => {
  const authorize: ServerOptions["authorize"] = ({ headers }) => {
    const user = headers.get("x-user");
    return user === null ? null : user === "root" ? { name: "root", role: "admin" } : "read-only";
  };

  it("authorize decides the caller and its role", async () => {
    const ask = await open({ authorize });
    expect((await ask("/ojs/v1/session")).status).toBe(401);
    const reader = await ask("/ojs/v1/session", { headers: { "x-user": "eve" } });
    expect(await reader.json()).toMatchObject({
      role: "read-only",
      authentication: "host",
      can_log_out: false,
    });
    const root = { "x-user": "root", ...OWN };
    expect(
      (await ask("/ojs/v1/queues/mail/pause", { method: "POST", body: "{}", headers: root })).status,
    ).toBe(200);
    const entries = await ask("/ojs/v1/admin/audit", { headers: { "x-user": "root" } });
    expect(await entries.json()).toMatchObject({ items: [{ actor: "root" }] });
  });

  it("authorize is called only without a key, and changes need the dashboard's own pages", async () => {
    const ask = await open({ authorize, keys: KEYS });
    const bearer = { Authorization: `Bearer ${reader.key}`, "x-user": "root" };
    expect(await (await ask("/ojs/v1/session", { headers: bearer })).json()).toMatchObject({
      name: "rob",
      authentication: "key",
    });
    const forged = await ask("/ojs/v1/queues/mail/pause", {
      method: "POST",
      body: "{}",
      headers: { "x-user": "root", "Content-Type": "application/json" },
    });
    expect(forged.status).toBe(403);
  });
});
