/** What users export from their own modules: the compiler must be able to name all of it in their declarations. */
import {
  chain,
  defineJob,
  defineSaga,
  explainWhen,
  exponential,
  group,
  openEngine,
  processor,
  sandboxed,
  snooze,
  step,
} from "curfew";
import { z } from "zod";

export const follow = defineJob({ type: "exported.follow", payload: z.object({ year: z.int() }) });
export const backoff = exponential({ first: "1s" });
export const followed = processor(follow, ({ payload }) => payload.year);
export const elsewhere = sandboxed(follow, new URL("./work.ts", import.meta.url));
export const later = snooze({ after: "1m" });
export const workflow = chain([group([step(follow, { year: 1 })]), step(follow, { year: 2 })]);
export const order = defineSaga({
  type: "exported.order",
  state: z.object({ id: z.string() }),
  messages: { placed: z.object({ id: z.string() }) },
  correlate: { placed: ({ id }) => id },
  startedBy: ["placed"],
  start: ({ id }) => ({ id }),
  on: { placed: (state) => state },
});
export const open = () => openEngine({ store: "memory:" });

type Engine = Awaited<ReturnType<typeof open>>;

export const work = (engine: Engine) => engine.work({ processors: [followed] });
export const host = (engine: Engine) => engine.host([order]);
export const enqueue = (engine: Engine) => engine.enqueue(follow, { year: 3 });
export const find = (engine: Engine) => engine.find({ type: "exported.follow" });
export const start = (engine: Engine) => engine.workflows.start(workflow);
export const put = (engine: Engine) =>
  engine.crons.put("exported", { cron: "@daily", job: follow, payload: { year: 4 } });
export const saga = (engine: Engine) => engine.saga(order, "1").load();
export const send = (engine: Engine) => engine.send(order, "placed", { id: "1" });
export const stats = (engine: Engine) => engine.stats();
export const advise = (engine: Engine) => engine.advise();
export const serve = (engine: Engine) => engine.timeouts.serve("mail", () => {});
export const explain = (engine: Engine) => engine.explain("id");
export const read = (engine: Engine) => engine.journal.read();
export const audit = (engine: Engine) => engine.audit.read();
export const describe = (engine: Engine) => engine.queues.describe("mail");
export const limit = (engine: Engine) => engine.limits.get("key");
export const retryAll = (engine: Engine) => engine.deadLetters.retryAll({ all: true });
export const operator = (engine: Engine) => engine.as({ actor: "mia" });
export const progress = (engine: Engine) => engine.job("id").progress();
export const logs = (engine: Engine) => engine.job("id").logs();
export const begin = (engine: Engine) => engine.maintenance.begin({});
export const checkpoint = (engine: Engine) => engine.job("id").checkpoint();
export const metrics = (engine: Engine) => engine.timeouts.metrics();
export const status = (engine: Engine) => work(engine).status();
export const preview = (engine: Engine) => engine.crons.preview({ cron: "@daily" });
export const workflows = (engine: Engine) => engine.workflows.list();
export const steps = (engine: Engine) => engine.workflows.get("id").steps();
export const when = explainWhen({ after: "1m" }, { now: new Date(0) });
