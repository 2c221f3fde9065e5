/**
 * `npm run fuzz`: strange requests against the server, without end or `--requests 1000000`, from `--seed 1`. What is
 * found is printed with the request that did it. `--store postgres://…` puts a database behind it, in real time.
 */
import { parseArgs } from "node:util";
import { addRun } from "../support/run-report.ts";
import { wholeNumber } from "../support/whole-number.ts";
import { fuzz, fuzzStore } from "./fuzz/run.ts";
import { fuzzSocket } from "./fuzz/socket.ts";

const { values } = parseArgs({
  options: {
    requests: { type: "string", default: "1000000" },
    seed: { type: "string", default: "1" },
    store: { type: "string" },
    report: { type: "string" },
  },
});
const requests = wholeNumber("requests", values.requests, 1);
const seed = wholeNumber("seed", values.seed);
const startedAt = performance.now();

function keep(on: string, store: string, sent: number, findings: readonly string[]): void {
  const command = `npm run fuzz -- --requests ${requests} --seed ${seed}${store}`;
  addRun(values.report, "fuzz", { command, on, startedAt, counts: { requests: sent }, findings });
}

const MOST_GROWTH = 32_000_000;
const shown = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;

if (values.store !== undefined) {
  const { sent, statuses, findings } = await fuzzStore({ seed, requests, store: values.store });
  for (const finding of findings) console.log(finding);
  console.log(
    `${sent} sent, by status ${JSON.stringify(Object.fromEntries(statuses))}, ${findings.length} findings`,
  );
  const [kind] = values.store.split(":");
  keep(kind?.startsWith("postgres") ? "PostgreSQL" : `${kind}`, " --store <address>", sent, findings);
  process.exit(findings.length === 0 ? 0 : 1);
}

const overSocket = Math.round(requests / 10);
const report = await fuzz({
  seed,
  requests: requests - overSocket,
  onEpoch: (sent, heap) => console.log(`${String(sent).padStart(9)} sent, live heap ${shown(heap)}`),
});
const socket = await fuzzSocket({ seed, requests: overSocket });
const findings = [...report.findings, ...socket.findings];
// Caches fill at first; what still grows after a quarter of the run would grow for ever.
const settled = report.heaps.slice(Math.floor(report.heaps.length / 4));
const growth = (settled.at(-1) ?? 0) - (settled[0] ?? 0);
if (growth > MOST_GROWTH) findings.push(`the live heap grew by ${shown(growth)}`);
for (const finding of findings) console.log(finding);
console.log(
  `in process: ${report.sent} sent, by status ${JSON.stringify(Object.fromEntries(report.statuses))}`,
);
console.log(
  `over a socket: ${socket.sent} sent, by status ${JSON.stringify(Object.fromEntries(socket.statuses))}`,
);
console.log(`${findings.length} findings`);
keep("memory", "", report.sent + socket.sent, findings);
process.exit(findings.length === 0 ? 0 : 1);
