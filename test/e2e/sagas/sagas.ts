/** The sagas of the end-to-end tests, shared by the test and the processes it starts. */

import { z } from "zod";
import { defineSaga } from "../../../src/index.ts";

const Id = z.object({ id: z.string() });

/** Hears every step: a test that runs several engines in its own process listens here. */
export const entries: { readonly id: string; readonly what: "fired" | "stopped"; readonly at: number }[] = [];

/** A timeout that is revoked at about the time at which it fires. */
export const raceSaga = defineSaga({
  type: "race",
  state: z.object({ id: z.string(), fired: z.int(), revoke: z.string().nullable() }),
  messages: { begun: Id.extend({ fireAt: z.int() }), stopped: Id },
  timeouts: { fire: z.object({}) },
  correlate: { begun: ({ id }) => id, stopped: ({ id }) => id },
  startedBy: "begun",
  start({ id, fireAt }, saga) {
    saga.request("fire", new Date(fireAt), {}, { key: "fire" });
    return { id, fired: 0, revoke: null };
  },
  on: {
    stopped(state, _message, saga) {
      entries.push({ id: state.id, what: "stopped", at: performance.now() });
      return { ...state, revoke: saga.revoke("fire") };
    },
  },
  onTimeout: {
    fire(state) {
      entries.push({ id: state.id, what: "fired", at: performance.now() });
      return { ...state, fired: state.fired + 1 };
    },
  },
});

/** Writes down what it is told, and asks for a timeout each time that writes down as well. */
export const logSaga = defineSaga({
  type: "log",
  state: z.object({ id: z.string(), told: z.array(z.int()), rung: z.array(z.int()) }),
  messages: { told: Id.extend({ nth: z.int() }) },
  timeouts: { rung: z.object({ nth: z.int() }) },
  correlate: { told: ({ id }) => id },
  startedBy: "told",
  start({ id, nth }, saga) {
    saga.request("rung", "100ms", { nth });
    return { id, told: [nth], rung: [] };
  },
  on: {
    async told(state, { nth }, saga) {
      saga.request("rung", "100ms", { nth });
      // Long enough to be killed in the middle of it.
      await new Promise((resolve) => setTimeout(resolve, 5));
      return { ...state, told: [...state.told, nth] };
    },
  },
  onTimeout: { rung: (state, { nth }) => ({ ...state, rung: [...state.rung, nth] }) },
});
