import { expect, it } from "vitest";
import { defineJob, processor, unchecked } from "../../src/index.ts";
import { openClientStage } from "./client-stage.ts";

const SECRET = "iban-DE02120300000000202051";
const pay = defineJob({
  type: "pay",
  payload: unchecked<{ iban: string }>(),
  result: unchecked<{ iban: string }>(),
  retry: { attempts: 2, backoff: { kind: "constant", first: 100, max: 100, jitter: false } as never },
});

it("clients and remote workers encrypt and decrypt, and the server never sees it (14)", async () => {
  const encryption = { keys: { k1: new Uint8Array(32).fill(7) }, current: "k1" };
  const { client, engine, wire, work, advance, load } = await openClientStage({}, { encryption });
  const seen: unknown[] = [];
  work([
    processor(pay, async ({ payload, attempt, checkpoint, progress, lastCheckpoint }) => {
      seen.push([payload, lastCheckpoint]);
      progress(0.5, SECRET);
      await checkpoint({ iban: SECRET });
      if (attempt === 1) throw new Error("again");
      return payload;
    }),
  ]);
  const job = await client.enqueue(pay, { iban: SECRET });
  const result = job.result({ within: "30s" });
  await advance("5s");
  expect(await result).toEqual({ iban: SECRET });
  expect(seen).toEqual([
    [{ iban: SECRET }, undefined],
    [{ iban: SECRET }, { iban: SECRET }],
  ]);
  expect((await client.load(job.id))?.payload).toEqual({ iban: SECRET });
  expect(JSON.stringify(await load(job))).not.toContain(SECRET);
  expect(JSON.stringify(wire.calls)).not.toContain(SECRET);
  // An engine without the key shows what is stored, and says which key it lacks.
  expect((await engine.job(job.id).load())?.payload).toMatchObject({ "$curfew.sealed": "k1" });
  await expect(engine.job(job.id, pay).result({ within: "1s" })).rejects.toMatchObject({
    code: "key_missing",
  });
  const unique = { payload: ["iban"], debounce: { quiet: "1s" } } as const;
  await expect(client.enqueue(pay, { iban: SECRET }, { unique })).rejects.toThrow("options.unique.payload");
});

it("what a remote worker logs and throws is cleaned of redacted values, also of an encrypted payload (5.8)", async () => {
  const encryption = { keys: { k1: new Uint8Array(32).fill(7) }, current: "k1" };
  const { client, engine, wire, work, advance, load } = await openClientStage({}, { encryption });
  const hidden = defineJob({
    type: "pay.hidden",
    payload: unchecked<{ iban: string }>(),
    redact: ["payload.iban"],
    retry: { attempts: 1 },
  });
  work([
    processor(hidden, ({ payload, log }) => {
      log(`paying ${payload.iban}`, { to: payload.iban });
      throw new Error(`no such account: ${payload.iban}`, { cause: new Error(payload.iban) });
    }),
  ]);
  const job = await client.enqueue(hidden, { iban: SECRET });
  await advance("5s");
  const row = await load(job);
  expect([row.state, row.errors?.[0]?.message]).toEqual([
    "discarded",
    expect.stringMatching(/^no such account: /),
  ]);
  const { lines } = await engine.job(job.id).logs();
  expect(lines[0]?.message).toMatch(/^paying /);
  expect(JSON.stringify([row, lines, wire.calls])).not.toContain(SECRET);
});
