import { expect, it } from "vitest";
import { openEngine } from "../../open.ts";
import type { Store } from "../../ports/store.ts";
import { SchemaCache } from "./schema-cache.ts";

it("an answer that was overtaken by a newer one changes nothing", async () => {
  await using engine = await openEngine({ store: "memory:" });
  const { store } = engine;
  await engine.schemas.put("card.pay", 1, { type: "array" });
  const held = Promise.withResolvers<void>();
  let loads = 0;
  const slow: Store = {
    ...store,
    records: {
      ...store.records,
      load: async (...given) => {
        const answer = await store.records.load(...given);
        loads += 1;
        if (loads === 1) await held.promise;
        return answer;
      },
    },
  };
  const cache = new SchemaCache(slow);
  const first = cache.refresh();
  await engine.schemas.remove("card.pay", 1);
  await cache.refresh();
  held.resolve();
  await first;
  expect([...cache.types.keys()]).toEqual([]);
});
