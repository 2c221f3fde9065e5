/** A saga that takes its steps back: the last one first, each with its own limit, also after failures. */
import { defineSaga } from "curfew";
import { openTestEngine } from "curfew/testing";
import { z } from "zod";

await using test = await openTestEngine();
const { engine } = test;
const startedAt = test.now();
const say = (text: string) =>
  console.log(`${String(Math.round((test.now() - startedAt) / 1_000)).padStart(3)} s  ${text}`);
let calls = 0;

const trip = defineSaga({
  type: "trip",
  state: z.object({ tripId: z.string(), booked: z.array(z.string()) }),
  messages: {
    planned: z.object({ tripId: z.string() }),
    booked: z.object({ tripId: z.string(), what: z.string() }),
    soldOut: z.object({ tripId: z.string(), what: z.string() }),
  },
  timeouts: { tooSlow: z.object({}) },
  undos: { cancel: z.object({ what: z.string() }) },
  correlate: { planned: (m) => m.tripId, booked: (m) => m.tripId, soldOut: (m) => m.tripId },
  startedBy: "planned",
  start: ({ tripId }, saga) => {
    saga.request("tooSlow", "1h");
    return { tripId, booked: [] };
  },
  on: {
    booked: (state, { what }, saga) => {
      saga.undo("cancel", { what });
      say(`booked the ${what}`);
      return { ...state, booked: [...state.booked, what] };
    },
    soldOut: (state, { what }, saga) => {
      say(`the ${what} is sold out: take everything back`);
      return saga.compensate(state);
    },
  },
  onTimeout: { tooSlow: (state, _payload, saga) => saga.compensate(state) },
  onUndo: {
    cancel: async (state, { what }, saga) => {
      calls += 1;
      // The hotel does not answer at first. Its undo is given up after 5 s and tried again.
      if (what === "hotel" && calls === 1) await test.sleep("1m", saga.signal);
      say(`cancelled the ${what}`);
      return { ...state, booked: state.booked.filter((one) => one !== what) };
    },
  },
  attempt: { onUndo: { cancel: "5s" } },
});

engine.host([trip]);
engine.on("saga.failed", ({ event }) => say(`${event.kind} ${event.name} failed and is tried again`));
engine.on("saga.completed", () => say("the trip is taken back"));

await engine.send(trip, "planned", { tripId: "t-1" });
for (const what of ["flight", "hotel"]) await engine.send(trip, "booked", { tripId: "t-1", what });
await test.advance("1s");
const saga = engine.saga(trip, "t-1");
say(`undos: ${(await saga.load())?.undos.map(({ payload }) => JSON.stringify(payload)).join(" ")}`);
await engine.send(trip, "soldOut", { tripId: "t-1", what: "car" });
await test.advance("1m");
const view = await saga.load();
say(`state ${JSON.stringify(view?.state)}, timeouts left: ${view?.pending.length}`);
