import { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { openRedisStore } from "../../src/stores/redis/open-redis.ts";
import { DURABLE, findRedis, startNode } from "../redis.ts";
import { productionSystem } from "../support/system.ts";

const program = await findRedis("valkey");

describe.skipIf(!program)("keys of another version on Redis", () => {
  it.each([
    { layout: "1 1", fix: "export its jobs with that version" },
    { layout: "99 1", fix: "update this process" },
    { layout: "strange", fix: "update this process" },
  ])("are refused with layout $layout, and stay as they are", async ({ layout, fix }) => {
    if (!program) return;
    await using node = await startNode(program, DURABLE);
    const client = new Redis(node.url);
    await client.set("{other}:layout", layout);
    const store = openRedisStore({ connection: node.url, prefix: "other", system: productionSystem });
    await expect(store).rejects.toThrow(fix);
    expect(await client.get("{other}:layout")).toBe(layout);
    client.disconnect();
  });
});
