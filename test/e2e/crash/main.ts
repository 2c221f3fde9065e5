/**
 * `npm run chaos -- [--store sqlite|postgres] [--minutes 60] [--seed 1] [--pace 4] [--report <file>]`: the crash test for
 * as long as you like. Workers are killed and stopped while jobs are enqueued and run; PostgreSQL itself is killed, too. A
 * ledger outside the store says what was acknowledged and entered.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { addRun } from "../../support/run-report.ts";
import { wholeNumber } from "../../support/whole-number.ts";
import { type CrashOptions, crashRun } from "./crash-run.ts";
import { startHurtPostgres } from "./hurt-postgres.ts";

const { values } = parseArgs({
  options: {
    store: { type: "string", default: "sqlite" },
    minutes: { type: "string", default: "60" },
    seed: { type: "string", default: "1" },
    /** How many times slower than in `npm test`, so that the journal of an hour can be compared in memory. */
    pace: { type: "string", default: "4" },
    report: { type: "string" },
  },
});
const WORKERS = 3;
/** A job whose worker died is taken over after its lease, so some job ends every minute. */
const SETTLE_WITHIN = 180_000;

type Stores = { readonly [name: string]: { readonly on: string; open(): Promise<OpenStore> } };

interface OpenStore extends AsyncDisposable {
  readonly options: Pick<CrashOptions, "store" | "hurtStore">;
}

const STORES: Stores = {
  sqlite: {
    on: "SQLite",
    async open() {
      const folder = await mkdtemp(join(tmpdir(), "curfew-chaos-"));
      return {
        options: { store: `sqlite:${join(folder, "chaos.db")}` },
        [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
      };
    },
  },
  postgres: {
    on: "PostgreSQL",
    async open() {
      const { server, hurtStore } = await startHurtPostgres();
      return {
        options: { store: server.url, hurtStore },
        [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
      };
    },
  },
};

const named = Object.hasOwn(STORES, values.store) ? STORES[values.store] : undefined;
if (!named) throw new RangeError(`--store: "${values.store}" is none; use sqlite or postgres`);
const minutes = wholeNumber("minutes", values.minutes, 1);
const seed = wholeNumber("seed", values.seed);
const pace = wholeNumber("pace", values.pace, 1);
const startedAt = performance.now();
await using store = await named.open();
const { violations, mostAttempts, ...counts } = await crashRun({
  ...store.options,
  seconds: minutes * 60,
  seed,
  workers: WORKERS,
  pace,
  settleWithin: SETTLE_WITHIN,
  onSettling: (live, states) => {
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    console.log(`${seconds} s: ${live} jobs have not ended (${states})`);
  },
});
for (const violation of violations.slice(0, 50)) console.log(violation);
console.log(JSON.stringify(counts));
console.log(`${violations.length} violations on ${named.on} in ${minutes} minutes, seed ${seed}`);
const command = `npm run chaos -- --store ${values.store} --minutes ${minutes} --seed ${seed} --pace ${pace}`;
const worst = { mostAttempts };
addRun(values.report, "chaos", { command, on: named.on, startedAt, counts, worst, findings: violations });
process.exitCode = violations.length === 0 ? 0 : 1;
