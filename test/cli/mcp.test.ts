import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import { openEngine } from "../../src/index.ts";
import { createDatabase } from "../postgres.ts";
import { bareEnvironment, server } from "../server/command.ts";
import { answer, BUILT_MAIN, curfew, openStage, type Stage } from "./stage.ts";

interface Reply {
  readonly id: number | string | null;
  readonly result?: Record<string, unknown> & {
    readonly tools: { readonly name: string; readonly inputSchema: object }[];
    readonly content: { readonly text: string }[];
    readonly isError?: boolean;
  };
  readonly error?: { readonly code: number; readonly message: string };
}

/** A client of the protocol, on the standard input and output of a process. */
class Client {
  readonly child: ChildProcessWithoutNullStreams;
  readonly replies: Reply[] = [];
  stderr = "";
  #rest = "";
  #nextId = 1;
  readonly #waiting = new Set<() => void>();

  constructor(flags: readonly string[], env: NodeJS.ProcessEnv = {}) {
    this.child = spawn(process.execPath, [BUILT_MAIN, "mcp", ...flags], {
      env: { ...bareEnvironment(), ...env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
    this.child.stdout.setEncoding("utf8").on("data", (text: string) => {
      const lines = (this.#rest + text).split("\n");
      this.#rest = lines.pop() as string;
      // Standard output holds messages and nothing else: anything else fails here.
      for (const line of lines) this.replies.push(JSON.parse(line) as Reply);
      this.#wake();
    });
    this.child.on("close", () => this.#wake());
  }

  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.child.kill("SIGKILL");
    await once(this.child, "close");
  }

  write(text: string): void {
    this.child.stdin.write(text);
  }

  async reply(wanted: (reply: Reply) => boolean): Promise<Reply> {
    for (;;) {
      const at = this.replies.findIndex(wanted);
      if (at >= 0) return this.replies.splice(at, 1)[0] as Reply;
      if (this.child.exitCode !== null) throw new Error(`it ended: ${this.stderr}`);
      await new Promise<void>((resolve) => void this.#waiting.add(resolve));
    }
  }

  #wake(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const resolve of waiting) resolve();
  }

  async ask(method: string, params?: object): Promise<Reply> {
    const id = this.#nextId++;
    this.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, ...(params && { params }) })}\n`);
    return this.reply((reply) => reply.id === id);
  }

  initialize(protocolVersion = "2025-11-25"): Promise<Reply> {
    const clientInfo = { name: "test", version: "1" };
    return this.ask("initialize", { protocolVersion, capabilities: {}, clientInfo });
  }

  /** Calls a tool; its text, parsed where the call succeeded. */
  async call(name: string, given: object = {}) {
    const { result, error } = await this.ask("tools/call", { name, arguments: given });
    if (!result) throw new Error(error?.message);
    const text = result.content[0]?.text as string;
    return { isError: result.isError ?? false, text, data: result.isError ? null : JSON.parse(text) };
  }

  async end(): Promise<number | null> {
    this.child.stdin.end();
    const [code] = await once(this.child, "close");
    return code as number | null;
  }
}

/** A client that is gone when the test is over. */
function opened(flags: readonly string[], env?: NodeJS.ProcessEnv): Client {
  const client = new Client(flags, env);
  onTestFinished(() => client.kill());
  return client;
}

async function connected(flags: readonly string[], env?: NodeJS.ProcessEnv): Promise<Client> {
  const client = opened(flags, env);
  await client.initialize();
  return client;
}

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage.close());

const READS = [
  "list_jobs",
  "show_job",
  "why_job",
  "explain_job",
  "list_queues",
  "stats",
  "list_dead_letters",
];

describe("the protocol", () => {
  it.each(["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])(
    "agrees on version %s",
    async (version) => {
      const client = opened(["--store", stage.store]);
      const { result } = await client.initialize(version);
      expect(result).toMatchObject({
        protocolVersion: version,
        capabilities: { tools: {} },
        serverInfo: { name: "curfew" },
      });
    },
  );

  it("offers its newest version for one that it does not know, and ends with its input", async () => {
    const client = opened(["--store", stage.store]);
    expect((await client.initialize("1999-01-01")).result?.protocolVersion).toBe("2025-11-25");
    client.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    expect((await client.ask("ping")).result).toEqual({});
    expect(await client.end()).toBe(0);
    expect(client.stderr).toBe("");
  });

  it("ends at Ctrl-C", async () => {
    const client = await connected(["--store", stage.store]);
    client.child.kill("SIGINT");
    const [code] = await once(client.child, "close");
    expect(code).toBe(0);
  });

  it("wants initialize before tools", async () => {
    const client = opened(["--store", stage.store]);
    expect((await client.ask("tools/list")).error).toMatchObject({ code: -32_600, message: /initialize/ });
  });

  it("says nothing about a request that was cancelled", async () => {
    const client = await connected(["--store", stage.store]);
    client.write(
      `${JSON.stringify({ jsonrpc: "2.0", id: "gone", method: "tools/call", params: { name: "stats" } })}\n${JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "gone" } })}\n`,
    );
    await client.call("list_queues");
    await client.end();
    expect(client.replies).toEqual([]);
  });
});

describe("hostile input", () => {
  let client: Client;
  beforeAll(async () => {
    client = new Client(["--store", stage.store]);
    await client.initialize();
  });
  afterAll(() => client.kill());

  it.each([
    ["broken JSON", "{broken\n", -32_700],
    ["bytes that are no text", "\u0000\u0001\u0002\n", -32_700],
    ["a list", "[]\n", -32_600],
    ["a number", "42\n", -32_600],
    ["no method", '{"jsonrpc":"2.0"}\n', -32_600],
    ["an id of another kind", '{"jsonrpc":"2.0","id":{},"method":"ping"}\n', -32_600],
    ["another version of JSON-RPC", '{"jsonrpc":"1.0","id":7,"method":"ping"}\n', -32_600],
    ["an unknown method", '{"jsonrpc":"2.0","id":7,"method":"resources/list"}\n', -32_601],
    ["parameters in a list", '{"jsonrpc":"2.0","id":7,"method":"tools/list","params":[1]}\n', -32_602],
    ["an unknown tool", '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"rm"}}\n', -32_602],
    ["a tool without a name", '{"jsonrpc":"2.0","id":7,"method":"tools/call"}\n', -32_602],
    ["a line of 3 MB", `{"jsonrpc":"2.0","id":7,"method":"${"x".repeat(3_000_000)}"}\n`, -32_700],
  ])("of %s is answered with an error, and the session goes on", async (_name, text, code) => {
    client.write(text);
    const { error } = await client.reply((reply) => reply.error !== undefined);
    expect(error).toMatchObject({ code, message: expect.any(String) });
    expect(String(error?.message).length).toBeLessThan(300);
    expect((await client.ask("ping")).result).toEqual({});
  });

  it("of more requests than are allowed at once gets an error for each of those", async () => {
    const lines = Array.from({ length: 100 }, (_, index) =>
      JSON.stringify({
        jsonrpc: "2.0",
        id: `many-${index}`,
        method: "tools/call",
        params: { name: "stats" },
      }),
    );
    client.write(`${lines.join("\n")}\n`);
    const answered = await Promise.all(
      lines.map((_, index) => client.reply(({ id }) => id === `many-${index}`)),
    );
    expect(answered.filter(({ result }) => result)).not.toHaveLength(0);
    for (const { error } of answered) if (error) expect(error.code).toBe(-32_000);
  });

  it.each([
    ["an unknown field", "list_jobs", { nope: 1 }, /nope/],
    ["a limit above the bound", "list_jobs", { limit: 5_000 }, /limit/],
    ["an unknown state", "list_jobs", { state: "lost" }, /state/],
    ["a missing id", "show_job", {}, /id/],
    ["an instant that is none", "list_jobs", { since: "yesterday" }, /since/],
    ["an id with a path in it", "show_job", { id: "../../admin/stats" }, /there is no job/],
  ])("of %s comes back as a result that says what is wrong", async (_name, tool, given, says) => {
    expect(await client.call(tool, given)).toMatchObject({
      isError: true,
      text: expect.stringMatching(says),
    });
  });
});

describe("the tools", () => {
  it("only read, unless writing was allowed", async () => {
    const reader = await connected(["--store", stage.store]);
    const names = async (client: Client) =>
      (await client.ask("tools/list")).result?.tools.map(({ name }) => name);
    expect(await names(reader)).toEqual(READS);
    const { error } = await reader.ask("tools/call", {
      name: "cancel_job",
      arguments: { id: stage.jobs.waiting },
    });
    expect(error?.code).toBe(-32_602);
    expect(await answer(["show", stage.jobs.waiting, "--store", stage.store])).toMatchObject({
      state: "available",
    });
    const writer = await connected(["--store", stage.store, "--allow-write"]);
    expect(await names(writer)).toEqual([...READS, "retry_job", "cancel_job"]);
  });

  it("give the same from a store and from a server", async () => {
    const clients = [await connected(["--store", stage.store]), await connected(["--url", stage.url])];
    for (const client of clients) {
      const { data } = await client.call("list_jobs", { queue: "reports", limit: 5 });
      expect(data.jobs.map(({ id }: { id: string }) => id)).toContain(stage.jobs.waiting);
      expect((await client.call("show_job", { id: stage.jobs.done })).data).toMatchObject({
        state: "completed",
        result: { said: "hello" },
      });
      expect((await client.call("why_job", { id: stage.jobs.waiting })).data.reasons).not.toEqual([]);
      expect((await client.call("explain_job", { id: stage.jobs.dead })).data.explanation.fields).not.toEqual(
        [],
      );
      expect((await client.call("list_queues")).data.queues.length).toBeGreaterThan(0);
      expect((await client.call("stats")).data.jobs).toMatchObject({ available: expect.any(Number) });
      expect((await client.call("list_dead_letters")).data.jobs).toMatchObject([
        { id: stage.jobs.dead, error: { message: "the bank said no" } },
      ]);
    }
  });

  it("retry and cancel in PostgreSQL, with the reason in the audit", async () => {
    await using database = await createDatabase(inject("postgresUrl"));
    await curfew(["migrate", "--store", database.url]);
    const { id } = await answer(["enqueue", "mail.send", "--store", database.url]);
    const client = await connected(["--store", database.url, "--allow-write"]);
    const cancelled = await client.call("cancel_job", { id, reason: "asked to" });
    expect(cancelled.data).toMatchObject({ id, state: "cancelled" });
    const again = await client.call("retry_job", { id });
    expect(again).toMatchObject({
      isError: true,
      text: expect.stringContaining("only on jobs that are discarded"),
    });
    expect(await client.end()).toBe(0);
    await using engine = await openEngine({ store: database.url });
    const { entries } = await engine.audit.read();
    expect(entries).toMatchObject([{ action: "job.cancel", job: id, reason: "asked to" }]);
  });

  it("keep their replies short, and hide payloads where asked", async () => {
    const payload = JSON.stringify({ secret: "s3cret", long: "x".repeat(200_000) });
    const file = join(stage.folder, "payload.json");
    writeFileSync(file, payload);
    const { id } = await answer(["enqueue", "mail.send", `@${file}`, "--url", stage.url]);
    const open = await (await connected(["--url", stage.url])).call("show_job", { id });
    expect(open.text.length).toBeLessThan(41_000);
    expect(open.text).toMatch(/s3cret.*characters more/);
    const hidden = await (await connected(["--url", stage.url, "--hide-payloads"])).call("show_job", { id });
    expect(hidden.data).toMatchObject({ id, payload: "hidden" });
    expect(hidden.text).not.toContain("s3cret");
  });

  it("name the job that was probably meant", async () => {
    const id = stage.jobs.dead;
    const wrong = `${id.slice(0, -1)}${id.endsWith("0") ? "1" : "0"}`;
    const { isError, text } = await (await connected(["--url", stage.url])).call("why_job", { id: wrong });
    expect(isError).toBe(true);
    expect(text).toContain(`did you mean ${id}?`);
  });

  it("say that a server is gone or refuses, and go on", async () => {
    const keys = join(stage.folder, "mcp-keys.json");
    const made = await answer(["keys", "new", "--role", "read-only", "--name", "bot", "--file", keys]);
    const running = await server(["--store", "memory:", "--keys", keys], { cwd: stage.folder });
    const env = { CURFEW_KEY: String(made.key) };
    const client = await connected(["--url", running.url, "--allow-write"], env);
    const refused = await client.call("cancel_job", { id: stage.jobs.waiting });
    expect(refused).toMatchObject({ isError: true, text: expect.stringContaining("may not operate") });
    running.kill("SIGKILL");
    await running.ended;
    expect(await client.call("stats")).toMatchObject({
      isError: true,
      text: expect.stringContaining("cannot be reached"),
    });
    expect((await client.ask("ping")).result).toEqual({});
  });
});
