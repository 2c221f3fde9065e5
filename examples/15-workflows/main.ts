/**
 * An order as a workflow: reserve both articles side by side, charge, then ship and tell. A second order fails at the
 * card: the rest of its chain is cancelled. A third is cancelled while it waits.
 */
import {
  batch,
  chain,
  constant,
  defineJob,
  group,
  openEngine,
  processor,
  silentLogger,
  step,
  WorkflowFailedError,
} from "curfew";
import { z } from "zod";

const reserve = defineJob({ type: "stock.reserve", payload: z.string(), result: z.number() });
const charge = defineJob({
  type: "card.charge",
  payload: z.object({ card: z.string() }),
  result: z.object({ cents: z.number() }),
  retry: { attempts: 2, backoff: constant({ first: "10ms" }) },
});
const ship = defineJob({ type: "order.ship", payload: z.string(), result: z.string() });
const tell = defineJob({ type: "mail.send", payload: z.string() });

const PRICES: Record<string, number> = { lamp: 4_200, bulb: 300 };
const engine = await openEngine({ store: "memory:", logger: silentLogger });
engine.work({
  processors: [
    processor(reserve, ({ payload }) => PRICES[payload] ?? 0),
    processor(charge, ({ payload, parentResults }) => {
      if (payload.card === "blocked") throw new Error("the card is blocked");
      return { cents: (parentResults as number[]).reduce((sum, cents) => sum + cents, 0) };
    }),
    processor(ship, ({ payload, parentResults }) => {
      const [{ cents }] = parentResults as unknown as [{ cents: number }];
      return `${payload}, paid ${cents / 100}`;
    }),
    processor(tell, ({ payload }) => console.log(`mail: ${payload}`)),
  ],
});

function order(name: string, card: string) {
  return chain([
    group([step(reserve, "lamp"), step(reserve, "bulb")]),
    step(charge, { card }),
    batch([step(ship, name)], { onSuccess: step(tell, `${name} is on its way`) }),
  ]);
}

const mailed = new Promise<void>((resolve) => {
  engine.on("job.completed", ({ type }) => type === "mail.send" && resolve());
});
const first = await engine.workflows.start(order("order 1", "good"), { name: "order 1", timeout: "5m" });
const [parcel] = await first.result({ within: "10s" });
await mailed;
console.log(`${(await first.view())?.state}: ${parcel}`);

const second = await engine.workflows.start(order("order 2", "blocked"), { name: "order 2" });
try {
  await second.result({ within: "10s" });
} catch (error) {
  if (!(error instanceof WorkflowFailedError)) throw error;
  console.log(`${error.state}: ${error.failure?.type}: ${error.failure?.message}`);
}
const states = (await second.steps()).map((job) => `${job?.type} ${job?.state}`);
console.log(states.join(", "));

const third = await engine.workflows.start(
  chain([step(reserve, "lamp", { delay: "1h" }), step(ship, "order 3")]),
);
await third.cancel();
const view = await third.view();
console.log(`${view?.state}: ${view?.progress.cancelled} of ${view?.total} steps`);
await engine.close();
