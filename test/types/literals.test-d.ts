/** What handlers return keeps its literals, so enums and unions need no `as const`. */
import { z } from "zod";
import { batchProcessor, defineJob, defineSaga, processor } from "../../src/index.ts";

const Status = z.enum(["open", "done"]);
const Part = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("box"), sides: z.array(z.union([z.literal(1), z.literal(2)])) }),
  z.object({ kind: z.literal("bag"), isOpen: z.literal(false), tag: z.string().nullable() }),
]);
const check = defineJob({
  type: "order.check",
  payload: z.object({ n: z.int() }),
  result: z.object({ status: Status, parts: z.array(Part), note: z.string().optional() }),
});
const sort = defineJob({ type: "order.sort", result: Status });
const plain = defineJob({
  type: "order.plain",
  result: z.object({ names: z.array(z.string()), by: z.record(z.string(), z.int()) }),
});

processor(check, () => ({ status: "open", parts: [] }));
processor(check, ({ payload }) => ({
  status: payload.n > 1 ? "open" : "done",
  parts: [{ kind: "box", sides: [1, 2] }],
}));
processor(check, async ({ payload }) => {
  if (payload.n > 1) return { status: "done", parts: [{ kind: "bag", isOpen: false, tag: null }], note: "n" };
  return { status: "open", parts: [] };
});
processor(sort, () => "open");
processor(sort, async ({ signal }) => (signal.aborted ? "open" : "done"));
processor(plain, () => ({ names: ["ada"], by: { ada: 1 } }));
batchProcessor(check, { size: 10, within: "1s" }, ({ jobs }) =>
  jobs.map(() => ({ status: "open" as const, parts: [] })),
);
batchProcessor(sort, { size: 10, within: "1s" }, () => ["open", "done"]);

// @ts-expect-error: "opne" is not a status.
processor(check, () => ({ status: "opne", parts: [] }));
// @ts-expect-error: the same in an asynchronous handler.
processor(check, async () => ({ status: "opne", parts: [] }));
// @ts-expect-error: parts are missing.
processor(check, () => ({ status: "open" }));
// @ts-expect-error: a handler of a job with a result returns one.
processor(check, () => {});
// @ts-expect-error: "" is not a status.
processor(sort, () => "");
// @ts-expect-error: an empty object is no result.
processor(check, () => ({}));
// @ts-expect-error: a bag has no sides.
processor(check, () => ({ status: "open", parts: [{ kind: "bag", sides: [1] }] }));
// @ts-expect-error: "opne" is not a status.
batchProcessor(sort, { size: 10, within: "1s" }, () => ["opne"]);

const One = z.object({ id: z.string() });
const State = z.object({ id: z.string(), status: Status, parts: z.array(Part) });

defineSaga({
  type: "order",
  state: State,
  messages: { placed: One, moved: One, closed: One },
  timeouts: { late: z.object({}) },
  undos: { reopen: z.object({}) },
  correlate: { placed: (m) => m.id, moved: (m) => m.id, closed: (m) => m.id },
  startedBy: "placed",
  start: ({ id }) => ({ id, status: "open", parts: [{ kind: "box", sides: [1] }] }),
  on: {
    closed(state, _message, saga) {
      if (state.parts.length > 1) return { ...state, status: "done" };
      return saga.complete({ ...state, status: "done" });
    },
    async moved(state, _message, saga) {
      if (state.parts.length > 1) return saga.compensate({ ...state, status: "done" });
      return { ...state, status: "done", parts: [{ kind: "bag", isOpen: false, tag: null }] };
    },
  },
  onTimeout: { late: (state, _payload, saga) => saga.complete({ ...state, status: "done" }) },
  onUndo: { reopen: (state) => ({ ...state, status: "open" }) },
});

defineSaga({
  type: "order",
  state: State,
  messages: { placed: One, closed: One },
  correlate: { placed: (m) => m.id, closed: (m) => m.id },
  startedBy: "placed",
  // @ts-expect-error: "opne" is not a status.
  start: ({ id }) => ({ id, status: "opne", parts: [] }),
  on: {
    // @ts-expect-error: a handler returns the next state.
    closed: () => {},
  },
});
