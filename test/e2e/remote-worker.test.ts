import { type ChildProcess, execFile, fork } from "node:child_process";
import { once } from "node:events";
import { createServer as createHttpServer, request as httpRequest } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { openClient } from "../../src/client/index.ts";
import { seededRandom } from "../../src/core/random.ts";
import { defineJob, type Engine, openEngine, processor, sandboxed, unchecked } from "../../src/index.ts";
import { silentLogger } from "../../src/ports/log.ts";
import { createServer, listen } from "../../src/server/index.ts";
import { jobsOf, rowOf } from "../../src/testing/read-store.ts";
import { command } from "../server/command.ts";
import { testFolder } from "../support/folders.ts";
import { take } from "./remote/jobs.ts";
import { act } from "./sandbox/act-job.ts";
import { killChild } from "./support/kill-child.ts";
import { program } from "./support/program.ts";

/** Remote workers over real sockets, in processes that are really killed. */

const run = promisify(execFile);
const script = program(new URL("./remote/worker-process.ts", import.meta.url));

/** An engine and its server on a free port; both are closed after the test. */
async function serve(): Promise<{ engine: Engine; url: string }> {
  const engine = await openEngine({ store: "memory:" });
  const listening = await listen(createServer(engine), { port: 0, closeWithin: "1s" });
  onTestFinished(async () => {
    await listening.close();
    await engine.close({ drain: "0s" });
  });
  return { engine, url: listening.url };
}

function startWorker(url: string): ChildProcess {
  const child = fork(script, [url], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  onTestFinished(() => killChild(child));
  return child;
}

/** Resolves when the handler of the worker has begun an attempt. */
async function began(child: ChildProcess): Promise<number> {
  for (;;) {
    const [message] = (await once(child, "message")) as [{ began?: number }];
    if (message.began !== undefined) return message.began;
  }
}

async function freePort(): Promise<number> {
  const server = createTcpServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

describe("a remote worker in a process of its own (4.3, 5.2)", () => {
  it("killed with SIGKILL, its job runs elsewhere as soon as its silence is over", async () => {
    const { engine, url } = await serve();
    const client = openClient({ url });
    onTestFinished(() => client.close());
    const workers = [startWorker(url), startWorker(url)] as const;
    await Promise.all(workers.map((worker) => once(worker, "message")));
    const job = await client.enqueue(take, { milliseconds: 3_000 });
    const [first, second] = await Promise.race([
      began(workers[0]).then(() => workers),
      began(workers[1]).then(() => [workers[1], workers[0]] as const),
    ]);
    first.kill("SIGKILL");
    const killedAt = performance.now();
    expect(await began(second)).toBe(2);
    // The heartbeat of five seconds, half a second of margin, the backoff, and what a busy machine adds. Without the
    // heartbeat it would take the attempt timeout of two minutes.
    expect(performance.now() - killedAt).toBeLessThan(60_000);
    expect(await job.result({ within: "1m" })).toEqual({ pid: second.pid, attempt: 2 });
    expect((await rowOf(engine.store, job.id))?.errors?.map(({ type }) => type)).toEqual(["stalled"]);
  });

  it("the server is killed and started again in the middle: the handler goes on, and its result counts", async () => {
    const folder = testFolder();
    const port = await freePort();
    const flags = ["serve", "--store", `sqlite:${join(folder, "jobs.db")}`, "--port", String(port)];
    const before = command(flags);
    const [url] = await before.said(/http:\/\/[^\s"]+:\d+/);
    const client = openClient({ url });
    onTestFinished(() => client.close());
    const worker = startWorker(url);
    const job = await client.enqueue(take, { milliseconds: 4_000 }, { timeouts: { heartbeat: "20s" } });
    expect(await began(worker)).toBe(1);
    before.kill("SIGKILL");
    await before.ended;
    const after = command(flags);
    await after.said(/http:\/\/[^\s"]+:\d+/);
    expect(await job.result({ within: "1m" })).toEqual({ pid: worker.pid, attempt: 1 });
    expect((await job.load())?.errors).toEqual([]);
  });

  it("SIGTERM lets it finish and report, and it ends by itself", async () => {
    const { engine, url } = await serve();
    const client = openClient({ url });
    onTestFinished(() => client.close());
    const worker = startWorker(url);
    const job = await client.enqueue(take, { milliseconds: 1_000 });
    await began(worker);
    worker.disconnect();
    const ended = once(worker, "exit");
    worker.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
    expect((await rowOf(engine.store, job.id))?.state).toBe("completed");
  });

  it("a process that has closed its client ends by itself", async () => {
    const { url } = await serve();
    const { stdout } = await run(process.execPath, [script, url, "close"], { timeout: 120_000 });
    expect(stdout).toBe("closed\n");
  });

  it("a worker whose server is not there stays alive, and begins when it is", async () => {
    const port = await freePort();
    const worker = startWorker(`http://127.0.0.1:${port}`);
    await once(worker, "message");
    // A real wait: the point is that the process lives on, though nothing answers.
    await wait(1_500);
    expect(worker.exitCode).toBeNull();
    const engine = await openEngine({ store: "memory:" });
    const listening = await listen(createServer(engine), { port });
    onTestFinished(async () => {
      await listening.close();
      await engine.close({ drain: "0s" });
    });
    const job = await engine.enqueue(take, { milliseconds: 10 });
    expect(await job.result({ within: "1m" })).toMatchObject({ pid: worker.pid });
  });
});

describe("a remote worker with a sandbox (8.1, 8.3)", () => {
  const module = new URL("./sandbox/act.ts", import.meta.url);

  it("an endless loop is killed at its hard deadline, and the server learns where it hung", async () => {
    const { engine, url } = await serve();
    const client = openClient({ url });
    onTestFinished(() => client.close());
    const killed = new Promise<unknown>((resolve) => client.on("job.killed", resolve));
    client.work({ processors: [sandboxed(act, module)] });
    // The first run pays for the start of the child.
    await (await client.enqueue(act, { name: "noop" }, { timeouts: { attempt: "20s" } })).result({
      within: "1m",
    });
    // The grace is long, because a busy machine needs seconds to read a stack.
    const job = await client.enqueue(
      act,
      { name: "checkpointAndLoop" },
      { retry: { attempts: 2 }, timeouts: { grace: "3s" } },
    );
    expect(await job.result({ within: "60s" })).toBe("resumed");
    const row = await rowOf(engine.store, job.id);
    expect(row?.errors).toMatchObject([
      { type: "timeout", forced: true, stack: expect.stringMatching(/at spin/) },
    ]);
    expect(await killed).toMatchObject({ id: job.id, attempt: 1 });
  });

  it("a child that dies in the middle is an ordinary failure", async () => {
    const { engine, url } = await serve();
    const client = openClient({ url });
    onTestFinished(() => client.close());
    client.work({ processors: [sandboxed(act, module)] });
    const options = { timeouts: { attempt: "20s" } } as const;
    const job = await client.enqueue(act, { name: "exit", argument: 3 }, options);
    await job.result({ within: "1m" }).catch(() => {});
    expect((await rowOf(engine.store, job.id))?.errors).toMatchObject([{ type: "killed", code: "killed" }]);
  });
});

describe("a wire that loses replies", () => {
  /** Hands requests on, and drops the connection instead of handing back every other reply. */
  async function dropReplies(target: string): Promise<{ url: string; dropped: readonly string[] }> {
    const random = seededRandom(8);
    const dropped: string[] = [];
    const proxy = createHttpServer((incoming, outgoing) => {
      const { method, url, headers } = incoming;
      const onward = httpRequest(new URL(url ?? "/", target), { method, headers }, (answer) => {
        answer.resume();
        answer.on("error", () => outgoing.destroy());
        const chunks: Buffer[] = [];
        answer.on("data", (chunk) => chunks.push(chunk));
        answer.on("end", () => {
          if (random() < 0.5) {
            dropped.push(url ?? "/");
            outgoing.destroy();
            return;
          }
          outgoing.writeHead(answer.statusCode ?? 500, answer.headers).end(Buffer.concat(chunks));
        });
      });
      onward.on("error", () => outgoing.destroy());
      incoming.pipe(onward);
    }).listen(0, "127.0.0.1");
    await once(proxy, "listening");
    onTestFinished(() => {
      proxy.closeAllConnections();
      proxy.close();
    });
    const { port } = proxy.address() as AddressInfo;
    return { url: `http://127.0.0.1:${port}`, dropped };
  }

  it("doubles no job and loses none, and each runs once", async () => {
    const { engine, url } = await serve();
    const lossy = await dropReplies(url);
    const client = openClient({ url: lossy.url, tries: 30, logger: silentLogger });
    onTestFinished(() => client.close());
    const runs = new Map<string, number>();
    const count = defineJob({ type: "remote.count", payload: unchecked<{ readonly nth: number }>() });
    const singles = await Promise.all(Array.from({ length: 80 }, (_, nth) => client.enqueue(count, { nth })));
    const many = await client.enqueueMany(
      count,
      Array.from({ length: 80 }, (_, nth) => ({ nth: 80 + nth })),
    );
    const ids = [...singles, ...many].map(({ id }) => id);
    expect((await jobsOf(engine.store)).map(({ id }) => id)).toEqual(ids.toSorted());
    expect([...singles, ...many].some(({ duplicate }) => duplicate)).toBe(false);
    client.work({
      processors: [processor(count, ({ id }) => void runs.set(id, (runs.get(id) ?? 0) + 1))],
    });
    await Promise.all(ids.map((id) => engine.job(id).result({ within: "50s" })));
    expect(runs.size).toBe(160);
    expect([...runs.values()].every((times) => times === 1)).toBe(true);
    expect([lossy.dropped.length > 50, client.counters().lost]).toEqual([true, 0]);
    // Reports travel together, and replies to many of them at once got lost too.
    expect(lossy.dropped).toContain("/ojs/v1/workers/ack/batch");
  });
});
