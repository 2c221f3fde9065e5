import { describe, expect, it } from "vitest";
import { defineJob, processor } from "../../src/index.ts";
import { openStage } from "./stage.ts";

const ready = "http://127.0.0.1/ready";
const deaf = defineJob({
  type: "test.deaf",
  timeouts: { attempt: "5s", grace: "1s" },
  retry: { attempts: 1 },
});

describe("/ready of a server with workers of its own", () => {
  it("is 503 while a worker takes no jobs because handlers are stuck", async () => {
    await using stage = await openStage();
    const { promise, resolve: end } = Promise.withResolvers<void>();
    const hang = processor(deaf, () => promise);
    stage.engine.work({ processors: [hang], maxStuck: 1 });
    expect((await stage.get(ready)).body).toEqual({ status: "ready" });
    await stage.engine.enqueue(deaf);
    await stage.advance("7s");
    expect(await stage.get(ready)).toMatchObject({ status: 503, body: { status: "worker_unready" } });
    end();
    await stage.advance("1s");
    expect((await stage.get(ready)).status).toBe(200);
  });

  it("is 503 while the server closes", async () => {
    await using stage = await openStage();
    await stage.server.close();
    expect(await stage.get(ready)).toMatchObject({ status: 503, body: { status: "closing" } });
  });
});
