/**
 * `npm run test:webhooks [-- --deliveries 50000 --store postgres --rate 50 --rounds 10]`: endpoints that fail, hang, lie,
 * redirect and close. None of the deliveries may be lost, and none may be out of order where order is asked for. The same
 * load without webhooks alternates with it, for the time of an enqueue.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createDatabase, startPostgres } from "../postgres.ts";
import { runLane } from "./lane.ts";

const { values } = parseArgs({
  options: {
    deliveries: { type: "string", default: "50000" },
    store: { type: "string", default: "sqlite" },
    rate: { type: "string", default: "50" },
    rounds: { type: "string", default: "10" },
  },
});
const options = {
  deliveries: Number(values.deliveries),
  rate: Number(values.rate),
  rounds: Number(values.rounds),
};
const folder = mkdtempSync(join(tmpdir(), "curfew-webhooks-"));
try {
  await using postgres = values.store === "postgres" ? await startPostgres() : null;
  await using first = postgres && (await createDatabase(postgres.url));
  await using second = postgres && (await createDatabase(postgres.url));
  const file = (name: string) => `sqlite:${join(folder, name)}`;
  const stores = [first?.url ?? file("a.db"), second?.url ?? file("b.db")] as const;
  const result = await runLane({ ...options, stores });
  console.log(JSON.stringify({ store: values.store, ...options, ...result }, null, 2));
  const { lost, outOfOrder, forgotten, p99 } = result;
  const isGood = lost === 0 && outOfOrder === 0 && forgotten === 0;
  console.log(
    `lost ${lost}, out of order ${outOfOrder}, p99 of enqueues ${p99.ratio.toFixed(2)} × of the same run without`,
  );
  process.exitCode = isGood ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
