import { defineJob, openEngine, silentLogger, type UniqueOptions } from "../../../src/index.ts";

/** One process of unique.test.ts: it enqueues one job many times at once, and tells what it was answered. */
const [address = "", rule = "{}", count = "1"] = process.argv.slice(2);

const engine = await openEngine({ store: address, logger: silentLogger });
const job = defineJob({ type: "test.unique", unique: JSON.parse(rule) as UniqueOptions });

process.once("message", async () => {
  const handles = await Promise.all(
    Array.from({ length: Number(count) }, () => engine.enqueue(job, { order: 7 })),
  );
  const ids = [...new Set(handles.map(({ id }) => id))];
  const created = handles.filter(({ duplicate }) => !duplicate).length;
  await engine.close();
  process.send?.({ ids, created }, () => process.disconnect());
});
process.send?.("ready");
