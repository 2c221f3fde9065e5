import { defineJob, openEngine, silentLogger, type UniqueOptions, unchecked } from "../../../src/index.ts";

/**
 * One process of paced.test.ts. For each key that it is sent it enqueues jobs of that key, one alone and three at once in turn,
 * and sends the id that each call was answered.
 */
const [address = "", rule = "{}", name = ""] = process.argv.slice(2);

const engine = await openEngine({ store: address, logger: silentLogger });
const job = defineJob({
  type: "test.paced",
  payload: unchecked<{ key: string; by: string; nth: number }>(),
  unique: { payload: ["key"], ...(JSON.parse(rule) as UniqueOptions) },
});

async function enqueueAll(key: string, calls: number): Promise<string[]> {
  const ids: string[] = [];
  for (let nth = 0; nth < calls; ) {
    const size = Math.min(nth % 4 === 0 ? 1 : 3, calls - nth);
    const payloads = Array.from({ length: size }, (_, index) => ({ key, by: name, nth: nth + index }));
    for (const { id } of await Promise.all(payloads.map((payload) => engine.enqueue(job, payload))))
      ids.push(id);
    nth += size;
  }
  return ids;
}

process.on("message", ({ key, calls }: { key: string; calls: number }) => {
  void enqueueAll(key, calls).then((ids) => process.send?.(ids));
});
process.send?.("ready");
