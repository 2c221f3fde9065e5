/** What a user of the package writes: compiled and as it is, with sandboxes as processes and as threads. */
import { openEngine, sandboxed, silentLogger } from "curfew";
import { work } from "./jobs.ts";

const module = new URL(import.meta.url.endsWith(".ts") ? "./work.ts" : "./work.js", import.meta.url);
const at = "2030-05-06T00:00:00Z";

for (const kind of ["process", "thread"] as const) {
  await using engine = await openEngine({ store: "memory:", logger: silentLogger });
  engine.work({ processors: [sandboxed(work, module, { kind, memory: "128mb" })] });
  const done = await engine.enqueue(work, { isStuck: false, at });
  const result = await done.result({ within: "1m" });
  const lines = (await engine.job(done.id).logs()).lines.map(({ message }) => message);
  const stuck = await engine.enqueue(work, { isStuck: true, at });
  await stuck.result({ within: "1m" }).catch(() => {});
  const row = await engine.load(stuck.id);
  const [error] = row?.errors ?? [];
  const followers = (await engine.find({ type: "package.follow" })).jobs.length;
  console.log(
    JSON.stringify({
      kind,
      result,
      lines,
      followers,
      checkpoint: row?.checkpoint,
      error: { type: error?.type, forced: error?.forced, stack: error?.stack },
    }),
  );
}
