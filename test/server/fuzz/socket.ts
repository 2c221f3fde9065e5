import { connect } from "node:net";
import { type Random, randomInt, seededRandom } from "../../../src/core/random.ts";
import { Engine } from "../../../src/engine/engine.ts";
import { realSystem } from "../../../src/engine/runtime/real-system.ts";
import { silentLogger } from "../../../src/ports/log.ts";
import { createServer } from "../../../src/server/app.ts";
import { listen } from "../../../src/server/listen.ts";
import { createMemoryStore } from "../../../src/stores/memory/memory-store.ts";
import { Known, strangeRequest } from "./requests.ts";
import type { FuzzReport } from "./run.ts";
import { pick } from "./strange.ts";

const AT_ONCE = 20;
/** A real wait: a request that was cut short is not answered, and nothing else says that no answer will come. */
const SILENCE = 200;

/** Sends strange bytes to a listening server: requests as text, some cut, some with bytes changed. */
export async function fuzzSocket(options: {
  seed: number;
  requests: number;
}): Promise<Omit<FuzzReport, "heaps" | "streams">> {
  const random = seededRandom(options.seed);
  await using engine = await Engine.open({
    store: createMemoryStore({ clock: () => Date.now() }),
    system: realSystem,
    logger: silentLogger,
  });
  const server = createServer(engine);
  const { port, url, close } = await listen(server, { port: 0, closeWithin: "1s" });
  const known = new Known();
  const statuses = new Map<number, number>();
  const findings: string[] = [];
  let sent = 0;
  const one = async () => {
    while (sent < options.requests && findings.length < 20) {
      sent += 1;
      const bytes = strangeBytes(random, known);
      const reply = await exchange(port, bytes);
      for (const [, status] of reply.matchAll(/^HTTP\/1\.1 (\d{3}) /gm)) {
        statuses.set(Number(status), (statuses.get(Number(status)) ?? 0) + 1);
      }
      if (/^HTTP\/1\.1 5(?!03)\d\d /m.test(reply))
        findings.push(`${bytes.toString("latin1").slice(0, 2_000)}\n  -> ${reply}`);
      const id = /"job":\{[^}]*"id":"([0-9a-f-]{36})"/.exec(reply)?.[1];
      if (id) known.add(id);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  const alive = await fetch(`${url}/health`);
  if (alive.status !== 200) findings.push(`the server is not well afterwards: ${alive.status}`);
  await close();
  return { sent, statuses, findings };
}

function strangeBytes(random: Random, known: Known): Buffer {
  const { method, path, headers, body } = strangeRequest(random, known);
  const content = Buffer.from(body ?? "");
  const all: Record<string, string> = {
    Host: "localhost",
    Connection: "close",
    "Content-Length": String(content.length),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  const verb =
    random() < 0.05 ? pick(random, ["ASSERT", "push", "", "GET GET", "TRACE", "CONNECT", "QUERY"]) : method;
  const text = Buffer.concat([Buffer.from(`${verb} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`), content]);
  const roll = random();
  if (roll < 0.05) return text.subarray(0, randomInt(random, text.length));
  if (roll < 0.15)
    for (let count = 0; count < 3; count++) text[randomInt(random, text.length)] = randomInt(random, 256);
  return text;
}

function exchange(port: number, bytes: Buffer): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    let reply = "";
    socket.setTimeout(SILENCE, () => socket.destroy());
    socket.setEncoding("latin1").on("data", (text) => (reply += text));
    socket.on("error", () => {});
    socket.on("close", () => resolve(reply));
    socket.write(bytes);
  });
}
