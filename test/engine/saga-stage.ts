/** A saga for the tests of section 7: a counter that does what its messages say, and writes down what happens to it. */

import { z } from "zod";
import { defineJob, defineSaga, type SagaContext } from "../../src/index.ts";

export const noteJob = defineJob({ type: "note", payload: z.object({ text: z.string() }) });

const Told = z.object({ id: z.string(), text: z.string() });
const Begun = z.object({ id: z.string(), text: z.string().default("") });

export interface Seen {
  readonly id: string;
  readonly text: string;
  readonly at: number;
  readonly eventId: string;
}

type State = { id: string; texts: string[] };
export type Act = (saga: SagaContext, text: string, state: State) => unknown;

/** `act` runs in every handler, after the text has been written down; what it returns is awaited. */
export function diary(act: Act = () => {}, more: object = {}) {
  const seen: Seen[] = [];
  const handle = async (state: State, text: string, saga: SagaContext): Promise<State> => {
    seen.push({ id: saga.id, text, at: saga.now, eventId: saga.eventId });
    const returned = await act(saga, text, state);
    if (returned !== undefined) return returned as State;
    return { ...state, texts: [...state.texts, text] };
  };
  const saga = defineSaga({
    type: "diary",
    state: z.object({ id: z.string(), texts: z.array(z.string()) }),
    messages: { begun: Begun, told: Told },
    timeouts: { rung: z.object({ text: z.string() }) },
    correlate: { begun: (m) => m.id, told: (m) => m.id },
    startedBy: "begun",
    start: (m, saga) => handle({ id: m.id, texts: [] }, m.text, saga as unknown as SagaContext),
    on: { told: (state, m, saga) => handle(state, m.text, saga as unknown as SagaContext) },
    onTimeout: { rung: (state, { text }, saga) => handle(state, text, saga as unknown as SagaContext) },
    ...more,
  });
  return { saga, seen, texts: () => seen.map(({ text }) => text) };
}
