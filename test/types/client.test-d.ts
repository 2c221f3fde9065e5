import { describe, expectTypeOf, it } from "vitest";
import { type Client, openClient, type RemoteJobHandle } from "../../src/client/index.ts";
import { type Job, processor } from "../../src/index.ts";
import { charge, optional, plain } from "./jobs.ts";

declare const client: Client;

describe("a client's enqueue", () => {
  it("takes what the definition takes, and gives a handle on its result", () => {
    expectTypeOf(client.enqueue(charge, { orderId: "o", cents: "1" })).toEqualTypeOf<
      Promise<RemoteJobHandle<{ receipt: string }>>
    >();
    client.enqueue(
      charge,
      { orderId: "o", cents: "1" },
      { timeouts: { attempt: "30s" }, delay: { minutes: 5 } },
    );
    client.enqueue(plain);
    client.enqueue(plain, undefined, { priority: 5 });
    client.enqueue(optional);
    expectTypeOf(client.enqueueMany(charge, [{ orderId: "o", cents: "1" }])).toEqualTypeOf<
      Promise<RemoteJobHandle<{ receipt: string }>[]>
    >();
  });

  it("refuses a wrong or missing payload, and options it does not know", () => {
    // @ts-expect-error cents is text when it is enqueued
    client.enqueue(charge, { orderId: "o", cents: 1 });
    // @ts-expect-error cents is missing
    client.enqueue(charge, { orderId: "o" });
    // @ts-expect-error a payload is needed
    client.enqueue(charge);
    // @ts-expect-error a date is not JSON
    client.enqueue(plain, new Date(0));
    // @ts-expect-error one of them does not fit
    client.enqueueMany(charge, [{ orderId: "o", cents: "1" }, { orderId: "o" }]);
    // @ts-expect-error a definition is made by defineJob
    client.enqueue("card.charge", {});
    // @ts-expect-error the key is timeouts
    client.enqueue(plain, null, { timeout: "30s" });
    // @ts-expect-error a bare number does not say its unit
    client.enqueue(plain, null, { delay: 30 });
    // @ts-expect-error many jobs cannot share one id
    client.enqueueMany(plain, [1], { id: "01890000-0000-7000-8000-000000000001" });
  });
});

describe("a client's handle", () => {
  it("gives the result as the definition declares it", async () => {
    const job = await client.enqueue(charge, { orderId: "o", cents: "1" });
    expectTypeOf(job.result()).toEqualTypeOf<Promise<{ receipt: string }>>();
    expectTypeOf(job.load()).toEqualTypeOf<Promise<Job<{ receipt: string }> | null>>();
    expectTypeOf(client.job("id", charge).result()).toEqualTypeOf<Promise<{ receipt: string }>>();
    job.extend({ attempt: "1h", total: "none" });
    // @ts-expect-error the result has no such field
    (await job.result()).total;
    // @ts-expect-error a bare number does not say its unit
    job.result({ within: 5_000 });
    // @ts-expect-error wait cannot be extended
    job.extend({ wait: "1h" });
  });
});

describe("a remote worker", () => {
  it("takes the same processors and options as a local one", () => {
    const processors = [processor(charge, () => ({ receipt: "r" })), processor(plain, () => null)];
    client.work({ processors, queues: { default: { concurrency: 5 } }, drain: "5s", maxStuck: 3 });
    client.work({ processors, middleware: [async (context, next) => (context.attempt > 1 ? next() : null)] });
    expectTypeOf(client.work({ processors }).status().unreported).toEqualTypeOf<number>();
    // @ts-expect-error concurrency belongs to a queue
    client.work({ processors, concurrency: 5 });
    // @ts-expect-error a bare number does not say its unit
    client.work({ processors, drain: 5 });
    // @ts-expect-error processors are needed
    client.work({});
    // @ts-expect-error a definition is no processor
    client.work({ processors: [charge] });
  });
});

describe("openClient", () => {
  it("takes an address and a key", () => {
    expectTypeOf(
      openClient({ url: "http://localhost:8080", key: "curfew_x", timeout: "5s" }),
    ).toEqualTypeOf<Client>();
    openClient({ url: "http://localhost", fetch: (url, init) => fetch(url, init) });
    // @ts-expect-error an address is needed
    openClient({});
    // @ts-expect-error a client has no store
    openClient({ url: "http://localhost", store: "memory:" });
    // @ts-expect-error a bare number does not say its unit
    openClient({ url: "http://localhost", timeout: 5_000 });
  });
});
