/** Endpoints in a process of their own. Each spoils a share of its calls, by the delivery and the number of the call. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What an endpoint took: the event, in the order of its answers. */
export interface Taken {
  readonly endpoint: string;
  readonly job: string;
  readonly event: string;
  readonly delivery: string;
  /** The number of the call of this delivery. */
  readonly nth: number;
}

const taken: Taken[] = [];
const distinct = new Set<string>();
const calls = new Map<string, number>();
const spoiled: Record<string, number> = {};

type Spoil = (response: ServerResponse) => void;

const fail: Spoil = (response) => response.writeHead(500).end("no");
const hang: Spoil = () => {};
const close: Spoil = (response) => response.destroy();
const redirect: Spoil = (response) => response.writeHead(307, { Location: "http://127.0.0.1:1/" }).end();
const SPOILS: Readonly<Record<string, Spoil>> = { fail, hang, close, redirect };

/** 2xx with a body that is huge, slow or garbage. The events count as taken. */
const lie: Spoil = (response) => {
  const kind = Math.floor(Math.random() * 3);
  if (kind === 0) response.end(Buffer.from([0xff, 0x00, 0xfe]));
  else if (kind === 1) response.end("x".repeat(200_000));
  else {
    response.write("slow");
    const timer = setInterval(() => response.write("."), 100);
    response.on("close", () => clearInterval(timer));
  }
};

/** Of 1,000 first calls: how many are spoiled and how. Second calls are spoiled half as often. */
const SHARES = { fail: 120, close: 40, redirect: 40, hang: 5 } as const;

function spoilOf(delivery: string, nth: number): string | null {
  if (nth > 4) return null;
  let draw = (Number.parseInt(delivery.slice(-6), 16) * 7_919 * nth) % 1_000;
  if (nth > 1) draw *= 2;
  for (const [name, share] of Object.entries(SHARES)) {
    if (draw < share) return name;
    draw -= share;
  }
  return null;
}

function answer(endpoint: string, delivery: string, body: string, response: ServerResponse): void {
  if (endpoint === "dead" || endpoint === "stuck") {
    if (endpoint === "dead") fail(response);
    return;
  }
  const key = `${endpoint} ${delivery}`;
  const nth = (calls.get(key) ?? 0) + 1;
  calls.set(key, nth);
  const name = spoilOf(delivery, nth);
  if (name !== null) {
    spoiled[name] = (spoiled[name] ?? 0) + 1;
    SPOILS[name]?.(response);
    return;
  }
  const parsed = JSON.parse(body) as { subject: string; type: string } | { subject: string; type: string }[];
  for (const { subject, type } of [parsed].flat()) {
    taken.push({ endpoint, job: subject, event: type, delivery, nth });
    distinct.add(`${endpoint} ${subject} ${type}`);
  }
  if (Number.parseInt(delivery.slice(-2), 16) < 5) {
    spoiled.lie = (spoiled.lie ?? 0) + 1;
    lie(response);
    return;
  }
  response.end("ok");
}

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("error", () => {});
  response.on("error", () => {});
  request.on("end", () =>
    answer(
      (request.url ?? "/").slice(1),
      String(request.headers["x-ojs-delivery-id"]),
      Buffer.concat(chunks).toString(),
      response,
    ),
  );
});
server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on("message", (asked) => {
  if (asked === "count") process.send?.({ count: distinct.size });
  if (asked === "taken") process.send?.({ taken, spoiled });
});
process.on("disconnect", () => process.exit());
