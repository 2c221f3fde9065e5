import { describe, expect, it } from "vitest";
import { chain, defineJob, group, step, unchecked } from "../../src/index.ts";
import { openClientStage } from "./client-stage.ts";

const TOKEN = "tok_98765";
const charge = defineJob({
  type: "card.charge",
  payload: unchecked<{ readonly card: string }>(),
  result: unchecked<{ readonly token: string; readonly ok: boolean }>(),
  redact: ["payload.card", "result.token", "meta.session"],
});

describe("redacted values in calls", () => {
  it("are hidden in the result of a workflow, whichever steps make it up", async () => {
    const { client, engine, advance } = await openClientStage();
    engine.work({
      processors: [{ definition: charge, handler: async () => ({ token: TOKEN, ok: true }) }],
    });
    const hidden = { token: "[redacted]", ok: true };
    const one = step(charge, { card: "4111" });
    const started = await client.workflows.start(chain([one, group([one, one])]));
    await advance("10s");
    expect(await client.workflows.get(started.id).result({ within: "1s" })).toEqual([hidden, hidden]);
    const own = { token: TOKEN, ok: true };
    expect(await engine.workflows.get(started.id).result({ within: "1s" })).toEqual([own, own]);
  });

  it("are hidden in the meta of crons and of delayed jobs", async () => {
    const { client } = await openClientStage();
    const options = { meta: { session: "s-secret", shop: "1" } };
    const put = await client.crons.put("c", {
      job: charge,
      payload: { card: "4111" },
      cron: "0 9 * * *",
      options,
    });
    const id = await client.timeouts.enqueue(charge, { card: "4111" }, { dueAt: { hours: 1 }, ...options });
    const seen = [put, await client.crons.get("c"), await client.timeouts.get(id)];
    const text = JSON.stringify(seen);
    expect(text).not.toContain("s-secret");
    expect(text.match(/\\?"session\\?":\\?"\[redacted\]/g)).toHaveLength(3);
    expect(text).toContain("shop");
  });
});
