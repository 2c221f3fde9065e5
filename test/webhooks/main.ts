/**
 * `npm run test:webhooks [-- --deliveries 50000 --store postgres --rate 50 --rounds 10 --report file.json]`: endpoints that fail, hang, lie,
 * redirect and close. None of the deliveries may be lost, and none may be out of order where order is asked for. The same
 * load without webhooks alternates with it, for the time of an enqueue.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createDatabase, startPostgres } from "../postgres.ts";
import { addRun } from "../support/run-report.ts";
import { type LaneResult, runLane } from "./lane.ts";

const { values } = parseArgs({
  options: {
    deliveries: { type: "string", default: "50000" },
    store: { type: "string", default: "sqlite" },
    rate: { type: "string", default: "50" },
    rounds: { type: "string", default: "10" },
    report: { type: "string" },
  },
});
const options = {
  deliveries: Number(values.deliveries),
  rate: Number(values.rate),
  rounds: Number(values.rounds),
};
const startedAt = performance.now();

/** The rules that did not hold, which are also in the report. */
function findingsOf({ lost, outOfOrder, forgotten }: LaneResult): string[] {
  const broken = { lost, "out of order": outOfOrder, "neither waiting nor dead": forgotten };
  return Object.entries(broken).flatMap(([rule, count]) => (count > 0 ? [`${count} ${rule}`] : []));
}

function keep(result: LaneResult, findings: readonly string[]): void {
  const { deliveries, lost, outOfOrder, repeated, p99 } = result;
  const spoiled = Object.values(result.spoiled).reduce((sum, count) => sum + count, 0);
  addRun(values.report, "webhooks", {
    command: `npm run test:webhooks -- --deliveries ${options.deliveries} --store ${values.store} --rate ${options.rate} --rounds ${options.rounds}`,
    on: values.store === "postgres" ? "PostgreSQL" : "SQLite",
    startedAt,
    counts: { deliveries, spoiled, lost, outOfOrder, repeated },
    worst: { p99: Math.round(p99.withHooks * 10) / 10, without: Math.round(p99.without * 10) / 10 },
    findings,
  });
}

const folder = mkdtempSync(join(tmpdir(), "curfew-webhooks-"));
try {
  await using postgres = values.store === "postgres" ? await startPostgres() : null;
  await using first = postgres && (await createDatabase(postgres.url));
  await using second = postgres && (await createDatabase(postgres.url));
  const file = (name: string) => `sqlite:${join(folder, name)}`;
  const stores = [first?.url ?? file("a.db"), second?.url ?? file("b.db")] as const;
  const result = await runLane({ ...options, stores });
  console.log(JSON.stringify({ store: values.store, ...options, ...result }, null, 2));
  const { lost, outOfOrder, p99 } = result;
  const findings = findingsOf(result);
  keep(result, findings);
  console.log(
    `lost ${lost}, out of order ${outOfOrder}, p99 of enqueues ${p99.ratio.toFixed(2)} × of the same run without`,
  );
  process.exitCode = findings.length === 0 ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
