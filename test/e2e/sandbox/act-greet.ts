/** A module with a schema: what it gets is parsed, and it enqueues what follows. */
import { processor } from "../../../src/engine/attempt/processor.ts";
import { follow, greet } from "./jobs.ts";

export default processor(greet, async ({ payload, enqueue, log, id }) => {
  const first = await enqueue(follow, { nth: 0 }, { id, meta: { from: id }, at: new Date(0) });
  const again = await enqueue(follow, { nth: 0 }, { id });
  log("enqueued", { first: { ...first }, again: { ...again } });
  const refused = await Promise.all([
    enqueue(follow, { nth: 0.5 }).catch((error) => error),
    enqueue(follow, { nth: 1 }, { delay: "2h", timeouts: { wait: "1h" } }).catch((error) => error),
    enqueue(follow, { nth: 1 }, { tx: {} as never }).catch((error) => error),
    enqueue({ type: "made.up" } as never, {}).catch((error) => error),
  ]);
  for (const { name, code, field, stack } of refused) log("refused", { name, code, field, stack });
  await Promise.all(Array.from({ length: 300 }, (_, nth) => enqueue(follow, { nth: nth + 1 })));
  await enqueue(follow, { nth: 301 }, { detach: true });
  return { year: payload.at.getUTCFullYear(), times: payload.times };
});
