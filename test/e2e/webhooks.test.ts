import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { it, type TestContext } from "vitest";
import { defineJob, openEngine, silentLogger } from "../../src/index.ts";
import { openReceiver } from "../server/webhook-receiver.ts";
import { storeAddresses } from "./support/addresses.ts";
import { killChild } from "./support/kill-child.ts";
import { program } from "./support/program.ts";

const JOBS = 100;
const KILLS = 2;
const { sqliteAddress, postgresAddress } = storeAddresses("webhooks");
const job = defineJob({ type: "lane.job" });

/** A process that delivers webhooks and works on the jobs. */
async function startServer(store: string, context: TestContext): Promise<ChildProcess> {
  const child = fork(program(new URL("../webhooks/server-main.ts", import.meta.url)), [store]);
  context.onTestFinished(() => void child.kill("SIGKILL"));
  await once(child, "message");
  return child;
}

/** With an engine of its own, which may allow this machine and delivers nothing after it is closed. */
async function subscribe(store: string, url: string, events: readonly string[]): Promise<void> {
  await using engine = await openEngine({ store, logger: silentLogger, webhooks: { allow: ["127.0.0.1"] } });
  const retry = { attempts: 20, delays: ["500ms"] } as const;
  await engine.webhooks.create({ url, events, ordered: true, timeout: "2s", retry });
}

it.concurrent.for(["sqlite", "postgres"] as const)(
  "events reach their endpoint in order on %s, though the processes that deliver are killed",
  async (kind, context) => {
    const { expect } = context;
    const store = await (kind === "sqlite" ? sqliteAddress() : postgresAddress());
    const taken: { subject: string; type: string }[] = [];
    await using receiver = await openReceiver((response, { body }, nth) => {
      // Every fifth call fails, so that there are always deliveries that wait for a retry.
      if (nth % 5 === 0) return void response.writeHead(503).end();
      taken.push(JSON.parse(body));
      response.end("ok");
    });
    const events = ["job.enqueued", "job.started", "job.completed"];
    await subscribe(store, receiver.url, events);
    await using engine = await openEngine({ store, logger: silentLogger });
    const ids: string[] = [];
    for (let kill = 0; kill < KILLS; kill++) {
      const servers = await Promise.all([startServer(store, context), startServer(store, context)]);
      const jobs = await engine.enqueueMany(job, new Array(JOBS / KILLS).fill(null));
      ids.push(...jobs.map(({ id }) => id));
      await expect.poll(() => taken.length).toBeGreaterThan(kill * 100);
      await Promise.all(servers.map(killChild));
    }
    await startServer(store, context);
    const distinct = () => new Set(taken.map(({ subject, type }) => `${subject} ${type}`)).size;
    await expect.poll(distinct, { timeout: 200_000, interval: 200 }).toBe(JOBS * events.length);
    for (const id of ids) {
      const names = taken.filter(({ subject }) => subject === id).map(({ type }) => type);
      expect([...new Set(names)]).toEqual(events);
    }
  },
);
