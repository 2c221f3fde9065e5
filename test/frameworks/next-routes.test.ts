import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Engine } from "../../src/index.ts";

const kept = globalThis as { curfewEngine?: Promise<Engine> | undefined };
let folder: string;

const example = join(import.meta.dirname, "../../examples/frameworks/next");

interface Route {
  GET(request: Request, context?: { params: Promise<{ id: string }> }): Promise<Response>;
  POST(request: Request): Promise<Response>;
}

/** The example is a package of its own with its own compiler settings, so it is imported by a path that only exists here. */
const load = <Module>(path: string): Promise<Module> => import(join(example, path));
const routes = {
  users: () => load<Route>("app/api/users/route.ts"),
  jobs: () => load<Route>("app/api/jobs/[id]/route.ts"),
  work: () => load<Route>("app/api/work/route.ts"),
  health: () => load<Route>("app/api/health/route.ts"),
  instrumentation: () => load<{ register(): Promise<void> }>("instrumentation.ts"),
};

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "curfew-next-routes-"));
  vi.stubEnv("STORE", `sqlite:${join(folder, "shop.db")}`);
});

afterEach(async () => {
  await (await kept.curfewEngine)?.close({ drain: "0s" });
  kept.curfewEngine = undefined;
  for (const signal of ["SIGTERM", "SIGINT"]) process.removeAllListeners(signal);
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

async function enqueue(): Promise<string> {
  const { POST } = await routes.users();
  const body = JSON.stringify({ email: "ada@example.org" });
  const reply = await POST(new Request("http://shop.test/api/users", { method: "POST", body }));
  expect(reply.status).toBe(202);
  return ((await reply.json()) as { job: string }).job;
}

async function read(id: string): Promise<unknown> {
  const { GET } = await routes.jobs();
  const reply = await GET(new Request("http://shop.test"), { params: Promise.resolve({ id }) });
  return reply.json();
}

const completed = { state: "completed", result: { sent: "mail to ada@example.org" } };

describe("the example for Next.js", () => {
  it("enqueues in a route, and its cron route runs what is due", async () => {
    vi.stubEnv("CRON_SECRET", "s3cret");
    const job = await enqueue();
    const { GET } = await routes.work();
    const request = new Request("http://shop.test", { headers: { authorization: "Bearer s3cret" } });
    const summary = (await (await GET(request)).json()) as object;
    expect(summary).toMatchObject({ done: 1, failed: 0, left: 0, stopped: "empty" });
    expect(await read(job)).toEqual(completed);
  });

  it("refuses the cron route without its secret, also if none is set", async () => {
    const { GET } = await routes.work();
    const wrong = () => new Request("http://shop.test", { headers: { authorization: "Bearer undefined" } });
    expect((await GET(wrong())).status).toBe(401);
    vi.stubEnv("CRON_SECRET", "s3cret");
    expect((await GET(wrong())).status).toBe(401);
  });

  it("starts a worker beside a server that stays, and none on the edge or on a platform of functions", async () => {
    const { register } = await routes.instrumentation();
    await register();
    vi.stubEnv("NEXT_RUNTIME", "nodejs");
    vi.stubEnv("VERCEL", "1");
    await register();
    expect(kept.curfewEngine).toBeUndefined();
    vi.stubEnv("VERCEL", "");
    await register();
    const job = await enqueue();
    await expect.poll(() => read(job)).toEqual(completed);
  });

  it("is healthy while its store answers", async () => {
    const { GET } = await routes.health();
    expect((await GET(new Request("http://shop.test"))).status).toBe(200);
    const engine = await kept.curfewEngine;
    if (!engine) throw new Error("the route opened no engine");
    engine.store.clock = () => Promise.reject(new Error("gone"));
    expect((await GET(new Request("http://shop.test"))).status).toBe(503);
  });
});
