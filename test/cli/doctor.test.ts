import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import pg from "pg";
import { beforeAll, describe, expect, inject, it } from "vitest";
import { defineJob, openEngine, processor } from "../../src/index.ts";
import { createDatabase } from "../postgres.ts";
import { RunningCommand, server } from "../server/command.ts";
import { fileFolder } from "../support/folders.ts";
import { answer, curfew } from "./stage.ts";

const folder = fileFolder();
let store = "";
beforeAll(async () => {
  store = `sqlite:${join(folder, "jobs.db")}`;
  await (await openEngine({ store })).close();
});

interface Report {
  readonly is_ok: boolean;
  readonly findings: readonly {
    readonly code: string;
    readonly level: string;
    readonly sentence: string;
    readonly action: string;
  }[];
  readonly passed: readonly { readonly code: string }[];
}

async function examine(
  flags: readonly string[],
  cwd = folder,
): Promise<Report & { readonly code: number | null }> {
  const { code, stdout } = await new RunningCommand(["doctor", "--json", ...flags], { cwd }).ended;
  const report = JSON.parse(stdout) as Report;
  // The machine that runs the tests may be busy.
  return { code, ...report, findings: report.findings.filter((finding) => finding.code !== "store_slow") };
}

const codesOf = ({ findings }: Report) => findings.map(({ code }) => code);

describe("curfew doctor", () => {
  it("finds nothing wrong with a store that has a worker, and ends with 0", async () => {
    await using engine = await openEngine({ store });
    engine.work({ processors: [processor(defineJob({ type: "greet" }), () => 1)] });
    await expect.poll(async () => codesOf(await examine(["--store", store]))).toEqual([]);
    const read = () => curfew(["doctor", "--store", store]);
    let found = await read();
    // A busy machine may find the store slow for a while.
    while (found.stdout.includes("[store_slow]")) found = await read();
    const { code, stdout, stderr } = found;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("✓ the store can be written");
    expect(stdout).toContain("✓ SQLite writes a WAL and syncs it");
    expect(stdout).toContain("✓ 1 worker alive");
    expect(stdout).toMatch(/Nothing is wrong with sqlite:.*\.\n$/);
  });

  it("finds a queue without a worker and ends with 1, on a store and on a server in the same words", async () => {
    await answer(["enqueue", "greet", "--queue", "lost", "--store", store]);
    const fromStore = await examine(["--store", store]);
    expect(fromStore).toMatchObject({ code: 1, is_ok: false });
    expect(fromStore.findings[0]).toMatchObject({
      code: "queue_without_worker",
      level: "error",
      sentence: 'No live worker takes "lost" (1 job).',
    });
    const { url } = await server(["--store", store], { cwd: folder });
    const fromServer = await examine(["--url", url]);
    expect(fromServer.findings[0]).toEqual(fromStore.findings[0]);
    const { code, stdout } = await curfew(["doctor", "--url", url]);
    expect(code).toBe(1);
    expect(stdout).toContain("✗ error [queue_without_worker]\n  No live worker takes");
    expect(stdout).toContain("  → Start a worker for the queue");
  });

  it("ends with 1 for a warning only with --strict", async () => {
    const file = join(folder, "open.db");
    await (await openEngine({ store: `sqlite:${file}` })).close();
    chmodSync(file, 0o644);
    const plain = await examine(["--store", `sqlite:${file}`]);
    expect(codesOf(plain)).toEqual(["file_open_to_others", "no_worker"]);
    expect(plain).toMatchObject({ code: 0, is_ok: true });
    expect(await examine(["--store", `sqlite:${file}`, "--strict"])).toMatchObject({ code: 1 });
  });

  it("finds second copies of packages below the folder that it runs in", async () => {
    const project = join(folder, "project");
    for (const [path, version] of [
      ["node_modules/@opentelemetry/api", "1.10.0"],
      ["node_modules/@scope/agent/node_modules/@opentelemetry/api", "1.8.0"],
    ] as const) {
      mkdirSync(join(project, path), { recursive: true });
      writeFileSync(join(project, path, "package.json"), JSON.stringify({ version }));
    }
    const { findings } = await examine(["--store", store], project);
    const found = findings.find(({ code }) => code === "second_opentelemetry");
    expect(found?.sentence).toContain("2 copies of @opentelemetry/api (1.10.0, 1.8.0)");
  });

  it("says that a store in memory is not durable, and that maintenance is on", async () => {
    const { url } = await server(["--store", "memory:"], { cwd: folder });
    await answer(["maintenance", "on", "--url", url]);
    const report = await examine(["--url", url]);
    expect(codesOf(report)).toEqual(["store_not_durable", "maintenance_on", "no_worker"]);
    expect(report.code).toBe(0);
  });

  it.each([
    ["a server that is down", ["--url", "http://127.0.0.1:9"], /that the store or server runs/],
    ["a database that is down", ["--store", "postgres://127.0.0.1:9/x"], /that the store or server runs/],
    ["a file that is missing", ["--store", "sqlite:/no/such.db"], /^Check the path, or make a new store/],
  ])("reports %s as a finding and ends with 3", async (_name, flags, advice) => {
    const report = await examine(flags);
    expect(report).toMatchObject({ code: 3, is_ok: false });
    expect(codesOf(report)).toEqual(["store_unreachable"]);
    expect(report.findings[0]?.action).toMatch(advice);
  });

  it("is refused to a key that may only read", async () => {
    const keys = join(folder, "keys.json");
    const made = await answer(["keys", "new", "--role", "read-only", "--name", "eve", "--file", keys]);
    const { url } = await server(["--store", store, "--keys", keys], { cwd: folder });
    const ended = await curfew(["doctor", "--url", url, "--key", String(made.key)]);
    expect(ended).toMatchObject({ code: 4, stdout: "" });
  });
});

/** A server between, which gives each client a process id of its own, as poolers do. */
async function startPooler(to: URL): Promise<{ readonly port: number; close(): void }> {
  const sockets = new Set<Socket>();
  const pooler = createServer((client) => {
    const upstream = connect(Number(to.port), to.hostname);
    sockets.add(client).add(upstream);
    client.pipe(upstream);
    upstream.on("data", (chunk: Buffer) => {
      // The message K has the length 12, the process id and the key to cancel with.
      const at = chunk.indexOf(Buffer.from([0x4b, 0, 0, 0, 12]));
      if (at >= 0) chunk.writeUInt32BE(4_242_424, at + 5);
      client.write(chunk);
    });
    client.on("error", () => {}).on("close", () => upstream.destroy());
    upstream.on("error", () => {}).on("close", () => client.destroy());
  });
  await new Promise<void>((resolve) => void pooler.listen(0, "127.0.0.1", resolve));
  const address = pooler.address();
  if (address === null || typeof address === "string") throw new Error("the system gave no port");
  return {
    port: address.port,
    close() {
      for (const socket of sockets) socket.destroy();
      pooler.close();
    },
  };
}

describe("curfew doctor on PostgreSQL", () => {
  it("finds nothing wrong with a healthy database", async () => {
    await using database = await createDatabase(inject("postgresUrl"));
    await curfew(["migrate", "--store", database.url]);
    const report = await examine(["--store", database.url]);
    expect(codesOf(report)).toEqual(["no_worker"]);
    expect(report.passed.map(({ code }) => code)).toEqual([
      "store_unreachable",
      "store_read_only",
      "schema_version",
      "clock_offset",
      "not_crash_safe",
      "pooler",
      "connections_low",
      "node_version",
      "queue_without_worker",
    ]);
  });

  it("finds a pooler by the process id that it makes up", async () => {
    await using database = await createDatabase(inject("postgresUrl"));
    await curfew(["migrate", "--store", database.url]);
    const url = new URL(database.url);
    const pooler = await startPooler(new URL(database.url));
    url.port = String(pooler.port);
    try {
      const { findings } = await examine(["--store", url.href]);
      expect(findings).toMatchObject([{ code: "pooler", level: "warning" }, { code: "no_worker" }]);
    } finally {
      pooler.close();
    }
  });

  it("finds a role that may not write", async () => {
    await using database = await createDatabase(inject("postgresUrl"));
    await (await openEngine({ store: database.url })).close();
    const admin = new pg.Client({ connectionString: database.url });
    await admin.connect();
    const url = new URL(database.url);
    url.username = `reader_${url.pathname.slice(1)}`;
    url.password = "reader";
    try {
      await admin.query(`create role ${url.username} login password 'reader'`);
      await admin.query(`grant usage on schema curfew to ${url.username}`);
      await admin.query(`grant select on all tables in schema curfew to ${url.username}`);
      const report = await examine(["--store", url.href]);
      expect(report.code).toBe(1);
      expect(report.findings[0]).toMatchObject({ code: "store_read_only" });
      expect(report.findings[0]?.sentence).toMatch(
        /role "reader_.*" may not insert, update and delete in table/,
      );
    } finally {
      await admin.query(`drop owned by ${url.username}`);
      await admin.query(`drop role ${url.username}`);
      await admin.end();
    }
  });
});
