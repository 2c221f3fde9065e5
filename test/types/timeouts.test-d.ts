import { expectTypeOf, test } from "vitest";
import { defineJob, type Engine, unchecked } from "../../src/index.ts";
import { type ClaimedTimeout, openTimeouts } from "../../src/timeouts.ts";

declare const engine: Engine;
const send = defineJob({ type: "mail.send", payload: unchecked<{ to: string }>() });

test("a timeout says where and when", async () => {
  const { timeouts } = engine;
  await timeouts.insert({ destination: "mail", dueAt: "5m" });
  await timeouts.insert({ destination: "mail", dueAt: { at: "17:00", zone: "Europe/Berlin" } });
  // @ts-expect-error a destination is missing
  await timeouts.insert({ dueAt: "5m" });
  // @ts-expect-error when it is due is missing
  await timeouts.insert({ destination: "mail" });
  // @ts-expect-error a bare number does not say its unit
  await timeouts.insert({ destination: "mail", dueAt: 5_000 });
  // @ts-expect-error a payload must be JSON
  await timeouts.insert({ destination: "mail", dueAt: "5m", payload: new Date() });
});

test("a job to enqueue later keeps its types", async () => {
  const { timeouts } = engine;
  await timeouts.enqueue(send, { to: "ada" }, { dueAt: "24h", key: "ada", queue: "mail" });
  // @ts-expect-error the payload is another one
  await timeouts.enqueue(send, { too: "ada" }, { dueAt: "24h" });
  // @ts-expect-error it does not say when
  await timeouts.enqueue(send, { to: "ada" }, {});
  // @ts-expect-error the timeout says when, not a delay
  await timeouts.enqueue(send, { to: "ada" }, { dueAt: "24h", delay: "1h" });
});

test("a key alone says nothing: it is unique within a destination or a saga", async () => {
  const { timeouts } = engine;
  await timeouts.cancel({ destination: "mail", key: "ada" });
  // @ts-expect-error within what?
  await timeouts.cancel({ key: "ada" });
  // @ts-expect-error all of a destination is too much
  await timeouts.cancel({ destination: "mail" });
});

test("what is claimed has an owner", async () => {
  const timeouts = await openTimeouts({ store: "memory:" });
  const claimed = await timeouts.claimDue();
  expectTypeOf(claimed).toEqualTypeOf<ClaimedTimeout[]>();
  expectTypeOf<ClaimedTimeout["owner"]>().toEqualTypeOf<string>();
  // @ts-expect-error a lease is a duration
  await openTimeouts({ store: "memory:", lease: 5 });
});
