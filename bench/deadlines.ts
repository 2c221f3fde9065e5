/**
 * `npm run bench:deadlines [-- --requests 400 --at-once 4]`: three services in three processes, each behind the Express
 * middleware and calling the next one with `deadlineFetch`. The clocks on the wall of the second and the third are ten
 * minutes ahead and behind. Measures how long after the first one's deadline the last one's signal aborts. All processes
 * read the same monotonic clock of the machine for it. It prints how far it is every five seconds, and each of its own
 * waits has an end.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { loadavg } from "node:os";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: { requests: { type: "string", default: "400" }, "at-once": { type: "string", default: "4" } },
});
const MINUTES = 60_000;
const LIMIT = 250;
const ALLOWED = 20;
/** Three processes load Express and the library. On a loaded machine each takes many seconds. */
const START_WITHIN = 60_000;
/** Far more than the limit: a reply that takes longer is a fault, and is counted as one. */
const ANSWER_WITHIN = 20_000;
/** Two processes read the same clock, and a message of one is written down a few microseconds after its reading. */
const RESOLUTION = 0.05;

interface Seen {
  readonly service: string;
  readonly id?: string;
  readonly at?: number;
  readonly reached?: string;
  readonly port?: number;
  readonly wall?: number;
}

const deadlines = new Map<string, number>();
const aborts = new Map<string, number>();
/** Requests that came to the third service. On a loaded machine the time may be up before one gets there. */
const reached = new Set<string>();
const walls: number[] = [];

/** Starts one service; `next` is the port of the one that it calls. */
async function start(service: string, offset: number, next: number | null) {
  const child = fork(new URL("./deadlines-child.ts", import.meta.url), [], {
    env: {
      ...process.env,
      SERVICE: service,
      OFFSET: String(offset),
      NEXT: String(next ?? ""),
      LIMIT: String(LIMIT),
    },
  });
  child.on("message", ({ id, at, service: from, reached: came }: Seen) => {
    if (came !== undefined) reached.add(came);
    if (id !== undefined && at !== undefined) (from === "first" ? deadlines : aborts).set(id, at);
  });
  const first = once(child, "message", { signal: AbortSignal.timeout(START_WITHIN) });
  const gone = once(child, "exit").then(([code]) => {
    throw new Error(`the ${service} service exited with ${code} before it listened`);
  });
  const [{ port, wall }] = (await Promise.race([first, gone])) as [Seen];
  gone.catch(() => {});
  walls.push((wall as number) - Date.now());
  return { child, port: port as number };
}

const third = await start("third", -10 * MINUTES, null);
const second = await start("second", 10 * MINUTES, third.port);
const first = await start("first", 0, second.port);

const count = Number(values.requests);
let sent = 0;
const plain: number[] = [];
/** What the machine does to a timer of the same length in an idle process: the part that is not ours. */
function plainTimer(): void {
  const dueAt = performance.now() + LIMIT;
  setTimeout(() => plain.push(performance.now() - dueAt), LIMIT);
}
const statuses: Record<string, number> = {};
const leastSeconds = () => Math.ceil(((count / Number(values["at-once"])) * LIMIT) / 1_000);
async function client(): Promise<void> {
  while (sent < count) {
    const id = String(sent++);
    plainTimer();
    const status = await answerTo(id);
    statuses[status] = (statuses[status] ?? 0) + 1;
  }
}
async function answerTo(id: string): Promise<number | "none"> {
  const signal = AbortSignal.timeout(ANSWER_WITHIN);
  try {
    return (await fetch(`http://127.0.0.1:${first.port}/?id=${id}`, { signal })).status;
  } catch {
    return "none";
  }
}
console.log(`three services listen; sending ${count} requests, which takes at least ${leastSeconds()} s`);
const progress = setInterval(
  () => console.log(`${sent} of ${count} sent, ${aborts.size} aborted at the third service`),
  5_000,
);
await Promise.all(Array.from({ length: Number(values["at-once"]) }, client));
// The last messages of the children: half a second of silence after the last abort, and ten seconds for one that is missing.
for (let tick = 0; tick < 20; tick++) {
  await new Promise((resolve) => setTimeout(resolve, 500));
  if (aborts.size === reached.size) break;
}
clearInterval(progress);

const late = [...deadlines].flatMap(([id, at]) => (aborts.has(id) ? [(aborts.get(id) as number) - at] : []));
late.sort((a, b) => a - b);
const percentile = (share: number) => late[Math.ceil(share * late.length) - 1]?.toFixed(1) ?? "none";
console.log(
  `wall clocks, in minutes from this process: ${walls.map((off) => Math.round(off / MINUTES)).join(", ")}`,
);
console.log(
  `answers: ${JSON.stringify(statuses)}; reached the third service: ${reached.size} of ${count}, aborted there: ${late.length}`,
);
console.log(
  `abort after the first deadline: min ${late[0]?.toFixed(2)} p50 ${percentile(0.5)} p99 ${percentile(0.99)} max ${late.at(-1)?.toFixed(1)} ms (allowed: from 0, at p99 ${ALLOWED})`,
);
plain.sort((a, b) => a - b);
console.log(
  `a plain timer meanwhile: p99 ${plain[Math.ceil(0.99 * plain.length) - 1]?.toFixed(1)} max ${plain.at(-1)?.toFixed(1)} ms late`,
);
console.log(`load ${loadavg()[0]?.toFixed(1)}`);
for (const { child } of [first, second, third]) child.kill();
const isNeverEarly = (late[0] as number) >= -RESOLUTION;
const isKept =
  statuses.none === undefined &&
  late.length > 0 &&
  late.length === reached.size &&
  isNeverEarly &&
  Number(percentile(0.99)) <= ALLOWED;
process.exit(isKept ? 0 : 1);
