/**
 * `npm run test:next`: packs curfew, installs examples/frameworks/next elsewhere from the registry, builds it with Next.js,
 * and sends requests to the server that it built. Takes some minutes and a network, so it is no part of `npm test`.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const root = join(import.meta.dirname, "..");
const scratch = mkdtempSync(join(tmpdir(), "curfew-next-"));
const app = join(scratch, "app");
const PORT = "38417";
const SECRET = "a-secret-of-this-test";
const ANSWER_WITHIN = 60_000;
const env = {
  ...process.env,
  PATH: [join(root, "node_modules/.bin"), join(process.execPath, ".."), process.env.PATH].join(delimiter),
  NEXT_TELEMETRY_DISABLED: "1",
  NEXT_MANUAL_SIG_HANDLE: "true",
  CRON_SECRET: SECRET,
  STORE: `sqlite:${join(scratch, "shop.db")}`,
};

async function run(cwd: string, program: string, ...flags: string[]): Promise<void> {
  console.log(`$ ${program} ${flags.join(" ")}`);
  const [code] = await once(spawn(program, flags, { cwd, env, stdio: "inherit" }), "close");
  if (code !== 0) throw new Error(`${program} ended with ${code}`);
}

/** Installs the example with this curfew, packed as users get it. */
async function install(): Promise<void> {
  const built = join(scratch, "built");
  await run(root, "tsc", "-p", "tsconfig.build.json", "--outDir", join(built, "dist"));
  for (const name of ["package.json", "CHANGELOG.md", "LICENSE"]) cpSync(join(root, name), join(built, name));
  await run(built, "npm", "pack", "--ignore-scripts", "--silent");
  const tarball = readdirSync(built).find((name) => name.endsWith(".tgz"));
  if (!tarball) throw new Error("npm pack made no tarball");
  cpSync(join(root, "examples/frameworks/next"), app, { recursive: true });
  const manifest = JSON.parse(readFileSync(join(app, "package.json"), "utf8"));
  manifest.dependencies.curfew = `file:${join(built, tarball)}`;
  writeFileSync(join(app, "package.json"), JSON.stringify(manifest, null, 2));
  await run(app, "npm", "install", "--no-audit", "--no-fund");
}

const address = `http://127.0.0.1:${PORT}`;

async function ask(path: string, init: RequestInit = {}): Promise<{ status: number; body: unknown }> {
  const reply = await fetch(`${address}${path}`, init);
  const text = await reply.text();
  return { status: reply.status, body: text.startsWith("{") ? JSON.parse(text) : text };
}

function check(what: string, actual: unknown, expected: unknown): void {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what}: ${a}, expected ${b}`);
  console.log(`ok: ${what}`);
}

/** Asks until the reply is the expected one. */
async function until(path: string, isRight: (reply: { status: number; body: unknown }) => boolean) {
  const endsAt = performance.now() + ANSWER_WITHIN;
  for (;;) {
    const reply = await ask(path).catch(() => undefined);
    if (reply && isRight(reply)) return reply;
    if (performance.now() > endsAt) throw new Error(`${path}: ${JSON.stringify(reply)}`);
    // A real server in another process: there is no event to wait for.
    await sleep(100);
  }
}

async function enqueue(): Promise<string> {
  const { status, body } = await ask("/api/users", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ email: "ada@example.org" }),
  });
  check("POST /api/users", status, 202);
  return (body as { job: string }).job;
}

function serve(more: NodeJS.ProcessEnv): ChildProcess {
  const next = join(app, "node_modules/next/dist/bin/next");
  return spawn(process.execPath, [next, "start", "-p", PORT, "-H", "127.0.0.1"], {
    cwd: app,
    env: { ...env, ...more },
    stdio: "inherit",
  });
}

async function stop(server: ChildProcess): Promise<number | null> {
  const ended = once(server, "close");
  server.kill("SIGTERM");
  return (await ended)[0];
}

const completed = { state: "completed", result: { sent: "mail to ada@example.org" } };
let server: ChildProcess | undefined;
try {
  await install();
  await run(app, "npm", "run", "build");

  server = serve({});
  await until("/api/health", ({ status }) => status === 200);
  const job = await enqueue();
  await until(`/api/jobs/${job}`, ({ body }) => JSON.stringify(body) === JSON.stringify(completed));
  console.log("ok: the worker beside the server completed the job");
  check("GET / is rendered", String((await ask("/")).body).includes("mails wait"), true);
  check("a job that is not there", (await ask("/api/jobs/unknown")).status, 404);
  check("SIGTERM ends the server with 0", await stop(server), 0);

  server = serve({ VERCEL: "1" });
  await until("/api/health", ({ status }) => status === 200);
  const second = await enqueue();
  check("no worker runs on a platform of functions", (await ask(`/api/jobs/${second}`)).body, {
    state: "available",
    result: null,
  });
  check("the cron's route needs its secret", (await ask("/api/work")).status, 401);
  const { body } = await ask("/api/work", { headers: { authorization: `Bearer ${SECRET}` } });
  const { done, left, stopped } = body as { done: number; left: number; stopped: string };
  check("the cron's route runs what is due", { done, left, stopped }, { done: 1, left: 0, stopped: "empty" });
  check("the job is done", (await ask(`/api/jobs/${second}`)).body, completed);
  await stop(server);
  server = undefined;
  console.log("passed: Next.js");
} finally {
  if (server && server.exitCode === null) server.kill("SIGKILL");
  rmSync(scratch, { recursive: true, force: true });
}
