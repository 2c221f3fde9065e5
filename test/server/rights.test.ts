import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Logger } from "../../src/ports/log.ts";
import { createKey, type KeyOptions } from "../../src/server/access/auth.ts";
import { ROLES, type Role } from "../../src/server/access/roles.ts";
import { type CurfewServer, createServer } from "../../src/server/app.ts";
import type { Route } from "../../src/server/route.ts";
import { ROUTES } from "../../src/server/routes/all.ts";
import { openTestEngine, type TestEngine } from "../../src/testing/index.ts";

let test: TestEngine;
let server: CurfewServer;
const logged: { fields: object; message: string }[] = [];
const roles = Object.keys(ROLES) as Role[];
const keys = new Map(roles.map((role) => [role, createKey()]));

beforeAll(async () => {
  test = await openTestEngine();
  const note = (fields: object, message: string) => void logged.push({ fields, message });
  const logger: Logger = { debug() {}, info: note, warn: note, error: note };
  const entries = roles.map(
    (role): KeyOptions => ({ name: role, role, hash: keys.get(role)?.hash as string }),
  );
  server = createServer(test.engine, { keys: entries, logger });
});
afterAll(() => test.close());

/** Sends a request and lets as much virtual time pass as its answer needs. */
async function send(route: Pick<Route, "method" | "path">, key?: string): Promise<Response> {
  const hasBody = route.method !== "GET" && route.method !== "DELETE";
  const request = new Request(`http://localhost${route.path.replace(/:\w+/g, "none")}`, {
    method: route.method,
    headers: { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) },
    ...(hasBody && { body: "{}" }),
  });
  let isDone = false;
  const reply = Promise.resolve(server.fetch(request)).finally(() => (isDone = true));
  while (!isDone) await test.system.advance(10);
  return reply;
}

const named = ROUTES.map((route) => [`${route.method} ${route.path}`, route] as const);

describe("who may call what", () => {
  it.each(named)("%s", async (_name, route) => {
    const anonymous = await send(route);
    // To log in without a key is refused for another reason.
    if (route.right === "open") expect(anonymous.status === 401 && route.method === "GET").toBe(false);
    else {
      expect(anonymous.status).toBe(401);
      expect(anonymous.headers.get("www-authenticate")).toContain("Bearer");
    }
    for (const role of roles) {
      const { status } = await send(route, keys.get(role)?.key);
      if (ROLES[role].includes(route.right)) expect([401, 403], role).not.toContain(status);
      else expect(status, role).toBe(403);
    }
  });

  it("the read-only role can change nothing but its own session", () => {
    const changing = ROUTES.filter(
      ({ method, right, path }) =>
        method !== "GET" &&
        (right === "read" || right === "open") &&
        path !== "/ojs/v1/session" &&
        // They have arguments, so they are sent with POST though they read; see "a reading call changes nothing".
        !path.startsWith("/ojs/v1/calls/") &&
        path !== "/ojs/v1/admin/when" &&
        path !== "/ojs/v1/admin/schemas/:type/check" &&
        path !== "/ojs/v1/schemas/:name/check",
    );
    expect(changing.map(({ method, path }) => `${method} ${path}`)).toEqual([]);
  });

  it("a caller without a key can read only health, readiness and descriptions", () => {
    const open = ROUTES.filter(({ right, method }) => right === "open" && method === "GET").map(
      ({ path }) => path,
    );
    expect(new Set(open)).toEqual(
      new Set(["/health", "/ojs/v1/health", "/ready", "/ojs/manifest", "/openapi.json"]),
    );
  });
});

describe("a failure of ours", () => {
  it("a failure shows the client only the request's id, and the log everything", async () => {
    const { rows } = test.engine.service;
    const { load } = rows;
    rows.load = () => Promise.reject(new Error("secret: password=hunter2"));
    const reply = await send(
      { method: "GET", path: "/ojs/v1/jobs/01a1e230-7865-7003-8005-c45d5220a9ee" },
      keys.get("admin")?.key,
    );
    rows.load = load;
    expect(reply.status).toBe(500);
    const text = await reply.text();
    expect(text).not.toMatch(/secret|hunter2|\.ts|\bat /);
    const id = reply.headers.get("x-request-id");
    expect(JSON.parse(text)).toMatchObject({ error: { retryable: true, request_id: id } });
    const line = logged.find(({ fields }) => "error" in fields);
    expect(line?.fields).toMatchObject({
      requestId: id,
      error: expect.objectContaining({ message: expect.stringContaining("hunter2") }),
    });
  });

  it("never logs a key", async () => {
    expect([logged.length > 0, keys.size > 0]).toEqual([true, true]);
    for (const { key } of keys.values()) expect(JSON.stringify(logged)).not.toContain(key);
  });
});
