/** A worker process of the test of limits: it works until it is killed, and writes down when handlers begin and end. */

import { appendFileSync } from "node:fs";
import { openEngine, processor, silentLogger } from "../../../src/index.ts";
import { paceJob, placesJob, queueJob } from "./jobs.ts";

const [store = "", file = ""] = process.argv.slice(2);
const engine = await openEngine({ store, logger: silentLogger });

const work = (takes: number) => async (context: { type: string; id: string; attempt: number }) => {
  const name = `${context.type} ${context.id}.${context.attempt} ${process.pid}`;
  appendFileSync(file, `begin ${Date.now()} ${name}\n`);
  await new Promise<void>((resolve) => setTimeout(resolve, takes));
  appendFileSync(file, `end ${Date.now()} ${name}\n`);
};

engine.work({
  queues: { default: { concurrency: 10 }, narrow: { concurrency: 10 } },
  processors: [processor(placesJob, work(80)), processor(paceJob, work(20)), processor(queueJob, work(50))],
});

/** How late the event loop of this process was at most. A machine that stalls the process delays its entries as much. */
const TICK = 20;
let expectedAt = Date.now() + TICK;
let worst = 0;
setInterval(() => {
  const lag = Date.now() - expectedAt;
  if (lag > worst) {
    worst = lag;
    appendFileSync(file, `lag ${lag}\n`);
  }
  expectedAt = Date.now() + TICK;
}, TICK);
process.send?.("ready");
