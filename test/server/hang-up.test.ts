import { once } from "node:events";
import { connect } from "node:net";
import { expect, it } from "vitest";
import { openEngine } from "../../src/open.ts";
import { silentLogger } from "../../src/ports/log.ts";
import { createServer } from "../../src/server/app.ts";
import { listen } from "../../src/server/listen.ts";

it("a worker that disconnects during a waiting fetch gets no job", async () => {
  await using engine = await openEngine({ store: "memory:", logger: silentLogger });
  const server = createServer(engine);
  const listening = await listen(server, { port: 0 });
  const post = async (path: string, body: object) => {
    const headers = { "Content-Type": "application/json" };
    const reply = await fetch(`${listening.url}/ojs/v1${path}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
    });
    return (await reply.json()) as { job: { id: string }; jobs: { id: string; attempt: number }[] };
  };
  try {
    const socket = connect(listening.port, "127.0.0.1");
    await once(socket, "connect");
    const body = JSON.stringify({ queues: ["default"], worker_id: "gone", wait_ms: 2_000 });
    const head = `POST /ojs/v1/workers/fetch HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n`;
    socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
    // The claim of the waiting fetch is what shows that it has arrived.
    const { jobs } = engine.store;
    const claim = jobs.claim.bind(jobs);
    await new Promise<void>((resolve) => {
      jobs.claim = (request) => {
        resolve();
        return claim(request);
      };
    });
    socket.destroy();
    // Its end must have reached the server before there is something to hand out.
    await post("/workers/heartbeat", { worker_id: "w-1" });
    const { job } = await post("/jobs", { type: "a", args: [] });
    const fetched = await post("/workers/fetch", { queues: ["default"], worker_id: "w-1", wait_ms: 2_000 });
    expect(fetched.jobs[0]).toMatchObject({ id: job.id, attempt: 1 });
  } finally {
    await listening.close();
  }
});
