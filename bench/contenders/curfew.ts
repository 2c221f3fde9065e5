import pg from "pg";
import { createIdSource } from "../../src/core/ids.ts";
import { defineJob, unchecked } from "../../src/core/job/definition.ts";
import { preparePayload, prepareStencil, stamp } from "../../src/core/job/envelope.ts";
import { resolvePolicy } from "../../src/core/job/policy.ts";
import { realSystem } from "../../src/engine/system.ts";
import { openPostgresStore } from "../../src/stores/postgres/postgres-store.ts";
import {
  type Contender,
  countdown,
  inBatches,
  type OpenContender,
  type Payload,
  payload,
} from "../contender.ts";
import { StandInWorker } from "./stand-in.ts";

/** Curfew's store and rules under a stand-in worker; `drop` deletes in the settle, `keep` moves to the finished jobs. */
export function curfew(retention: "drop" | "keep"): Contender {
  return { name: `curfew ${retention}`, open: (url) => open(url, retention) };
}

async function open(url: string, retention: "drop" | "keep"): Promise<OpenContender> {
  const definition = defineJob({
    type: "bench.nothing",
    payload: unchecked<Payload>(),
    ...(retention === "drop" && { retention: "0s" as const }),
  });
  const policy = resolvePolicy({ definition: definition.rung });
  const store = await openPostgresStore({ connection: url, system: realSystem });
  const offset = (await store.clock()) - performance.now();
  const now = () => performance.now() + offset;
  const nextId = createIdSource(now, realSystem.fill);
  const admin = new pg.Pool({ connectionString: url, max: 1 });
  return {
    async enqueue(count) {
      await inBatches(count, 1_000, 2, async (from, to) => {
        const at = Math.floor(now());
        const stencil = prepareStencil(definition, undefined, { now: at, nextId });
        const jobs = [];
        for (let n = from; n < to; n++) {
          jobs.push(stamp(stencil, await preparePayload(definition, payload(n)), nextId));
        }
        await store.jobs.enqueue(jobs, { now: at });
      });
    },
    async drain(count, concurrency, begin) {
      const { done, reached } = countdown(count, begin);
      const handler = async () => done();
      await new StandInWorker(store, { policy, concurrency, now, handler }).run(count);
      await reached;
      return async () => {};
    },
    async clear() {
      await admin.query("truncate curfew.jobs, curfew.done");
    },
    async close() {
      await store.close();
      await admin.end();
    },
  };
}
