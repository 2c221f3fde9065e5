/** A worker process of the workflow test: it works until it is killed, and writes down every entry into a handler. */

import { randomBytes } from "node:crypto";
import { appendFileSync } from "node:fs";
import { openEngine, processor, silentLogger } from "../../../src/index.ts";
import { crashStep, type StepOutcome } from "./jobs.ts";

const [store = "", entries = ""] = process.argv.slice(2);
const engine = await openEngine({ store, logger: silentLogger });

class StepFailed extends Error {
  override readonly name = "StepFailed";
}

engine.work({
  queues: { default: { concurrency: 20 } },
  processors: [
    processor(crashStep, async ({ payload, parentResults }) => {
      const entry = randomBytes(8).toString("hex");
      const results = parentResults as unknown as (StepOutcome | null)[];
      const after = results.flatMap((result) => result?.entry ?? []);
      appendFileSync(entries, `${payload.workflow} ${payload.step} ${entry} ${after.join(",") || "-"}\n`);
      // Work that takes its time: a kill shall find it in the middle.
      await new Promise((resolve) => setTimeout(resolve, payload.takes));
      if (payload.fails) throw new StepFailed("as told");
      return { step: payload.step, entry, after };
    }),
  ],
});
process.send?.("ready");
