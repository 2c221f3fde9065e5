/** One service of `bench/deadlines.ts`. Its clock on the wall is set before anything else is loaded. */
const { SERVICE = "", OFFSET = "0", NEXT = "", LIMIT = "250" } = process.env;
const RealDate = Date;
const offset = Number(OFFSET);
const shifted = class extends RealDate {
  constructor(...given: unknown[]) {
    super(...((given.length === 0 ? [RealDate.now() + offset] : given) as [number]));
  }
  static override now(): number {
    return RealDate.now() + offset;
  }
};
globalThis.Date = shifted as DateConstructor;

const { default: express } = await import("express");
const { createCalls, deadlineFetch, expressDeadline } = await import("../src/calls/index.ts");

/** Milliseconds of the machine's monotonic clock, the same in all processes. */
const monotonic = () => Number(process.hrtime.bigint()) / 1e6;
const report = (id: string, at: number) => process.send?.({ service: SERVICE, id, at });

const app = express();
app.use((request, _reply, next) => {
  if (SERVICE === "first") report(String(request.query.id), monotonic() + Number(LIMIT));
  next();
});
// Only the first service has the short limit. The others would wait for ten seconds.
app.use(expressDeadline(createCalls(), { attempt: SERVICE === "first" ? `${Number(LIMIT)}ms` : "10s" }));
app.get("/", async (request, reply) => {
  const id = String(request.query.id);
  const { signal } = request as unknown as { signal: AbortSignal };
  if (NEXT === "") {
    process.send?.({ service: SERVICE, reached: id });
    if (signal.aborted) report(id, monotonic());
    else signal.addEventListener("abort", () => report(id, monotonic()), { once: true });
    return; // never answers: only the deadline ends it
  }
  try {
    const answer = await deadlineFetch(`http://127.0.0.1:${NEXT}/?id=${id}`, { signal });
    reply.status(answer.status).send(await answer.text());
  } catch {
    // The middleware answers 504 at the deadline.
  }
});
const server = app.listen(0, "127.0.0.1", () =>
  process.send?.({ service: SERVICE, port: (server.address() as { port: number }).port, wall: Date.now() }),
);
process.on("disconnect", () => process.exit());
