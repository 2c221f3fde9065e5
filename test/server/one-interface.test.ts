import { expect, it, onTestFinished } from "vitest";
import { openClient } from "../../src/client/index.ts";
import {
  batch,
  type CurfewApi,
  type CurfewError,
  chain,
  defineJob,
  defineSaga,
  type Engine,
  group,
  openEngine,
  processor,
  silentLogger,
  step,
  unchecked,
} from "../../src/index.ts";
import { createServer, listen } from "../../src/server/index.ts";

/** One script, run against an engine and against a client of a server. Both must say the same. */

const charge = defineJob({
  type: "card.charge",
  queue: "cards",
  payload: unchecked<{ readonly order: string; readonly fail?: boolean }>(),
  result: unchecked<{ readonly receipt: string }>(),
  timeouts: { attempt: "5s", total: "10h" },
  retry: { attempts: 1, onExhausted: "dead-letter" },
});
const limited = defineJob({
  type: "mail.send",
  queue: "mail",
  payload: unchecked<{ readonly to: string }>(),
  limit: { key: ({ to }) => `mail:${to}`, concurrency: 1, strict: true },
  unique: { payload: ["to"], onConflict: "reject" },
});
const order = defineSaga({
  type: "order",
  state: unchecked<{ readonly id: string; readonly paid: boolean }>(),
  messages: {
    placed: unchecked<{ readonly id: string }>(),
    paid: unchecked<{ readonly id: string }>(),
  },
  timeouts: { unpaid: unchecked<{ readonly id: string }>() },
  startedBy: ["placed"],
  correlate: { placed: ({ id }) => id, paid: ({ id }) => id },
  start: ({ id }, saga) => {
    saga.request("unpaid", { hours: 1 }, { id }, { key: "unpaid" });
    saga.reply("welcome");
    return { id, paid: false };
  },
  on: { paid: (state) => ({ ...state, paid: true }) },
  onTimeout: { unpaid: (state) => state },
});

const processors = [
  processor(charge, ({ payload, progress, log }) => {
    progress(0.5, "half");
    log("charging", { order: payload.order });
    if (payload.fail) throw new Error("no money");
    return { receipt: `r-${payload.order}` };
  }),
];

type Note = (what: string, value: unknown) => void;

/** An error as a caller sees it. */
async function caught(call: () => unknown): Promise<unknown> {
  try {
    await call();
  } catch (error) {
    const { name, message, code, field } = error as CurfewError;
    return { name, message, code, field };
  }
  return "nothing was thrown";
}

async function jobs(api: CurfewApi, note: Note): Promise<void> {
  const paid = await api.enqueue(charge, { order: "1" }, { meta: { shop: "a" } });
  note("result", await paid.result({ within: "1m" }));
  note("job", await paid.load());
  note("progress", await paid.progress());
  note(
    "logs",
    (await paid.logs()).lines.map(({ message }) => message),
  );
  note("checkpoint", await paid.checkpoint());
  note(
    "why",
    (await paid.why()).reasons.map(({ code }) => code),
  );
  // The source differs: a client sends what the definition says with the job.
  note("explain", String(await paid.explain(charge)).split("\n").length);
  note("request", await api.request(charge, { order: "2" }, { within: "1m" }));
  const failing = await api.enqueue(charge, { order: "3", fail: true });
  note("failure", await caught(() => failing.result({ within: "1m" })));
  const later = await api.enqueue(charge, { order: "4" }, { delay: "1h", priority: 3 });
  note("later", await later.load());
  note("prioritised", (await later.prioritise(9)).priority);
  note("extended", Object.keys((await api.extend(later.id, { total: "8h" })).deadlines));
  note("rescheduled", (await later.reschedule({ delay: "2h" })).state);
  note("too late", await caught(() => later.reschedule({ delay: "9h" })));
  note("cancelled", (await api.cancel(later.id)).state);
  note("cancelled again", await caught(() => api.cancel(later.id)));
  note("unknown", await api.load("0198a1b2-0000-7000-8000-00000000000f"));
  note("not waiting", await caught(() => later.runNow()));
  note("no result", await caught(() => later.result({ within: "5s" })));
  const many = await api.enqueueMany(charge, [{ order: "5" }, { order: "6" }], { delay: "1h" });
  note(
    "many",
    many.map(({ duplicate }) => duplicate),
  );
  note("found", (await api.find({ queue: "cards", state: "scheduled" }, { limit: 1 })).jobs.length);
  note("found none", await api.find({ queue: "none" }));
  note("unknown filter", await caught(() => api.find({ quue: "x" } as never)));
  note(
    "explained typo",
    await caught(() => api.enqueue(charge, { order: "7" }, { timeouts: { atempt: "1s" } } as never)),
  );
  const page = await api.exportJobs({ state: "scheduled" });
  note("exported", page.lines.length);
  note(
    "imported",
    (await api.importJobs(page.lines)).map(({ status }) => status),
  );
}

async function unique(api: CurfewApi, note: Note): Promise<void> {
  const first = await api.enqueue(limited, { to: "a" });
  note("unique", first.duplicate);
  note("limit", await api.limits.get("mail:a"));
  const rejected = await caught(() => api.enqueue(limited, { to: "a" }));
  note("rejected", rejected);
  const ignored = await api.enqueue(
    limited,
    { to: "a" },
    { unique: { payload: ["to"], onConflict: "ignore" } },
  );
  note("ignored", [ignored.duplicate, ignored.id === first.id]);
  note("why a duplicate", (await ignored.why()).reasons[0]?.code);
  const many = await api.enqueueMany(limited, [{ to: "a" }, { to: "b" }, { to: "b" }]);
  note(
    "many unique",
    many.map(({ duplicate }) => duplicate),
  );
  const keyed = await api.enqueue(limited, { to: "z" }, { unique: { key: "k" }, limit: "none" });
  note("keyed", [
    keyed.duplicate,
    (await api.enqueue(limited, { to: "y" }, { unique: { key: "k" } })).duplicate,
  ]);
  note("override", (await api.limits.put("mail:a", { concurrency: 4 })).override);
  note(
    "limits",
    (await api.limits.list()).map(({ key }) => key),
  );
  note("deleted override", (await api.limits.delete("mail:a")).override);
  note("bad limit", await caught(() => api.limits.put("mail:a", { concurrency: 0 })));
}

async function operate(api: CurfewApi, note: Note): Promise<void> {
  await api.queues.configure("mail", { timeouts: { attempt: "7s" }, depth: { most: 3 } });
  note("queue", await api.queues.describe("mail"));
  note("full", await caught(() => api.enqueue(limited, { to: "c" })));
  await api.queues.pause("mail");
  note(
    "queues",
    (await api.queues.list()).map(({ name, pausedAt }) => [name, pausedAt !== null]),
  );
  await api.queues.resume("mail");
  await api.queues.reset("mail");
  note("depth", await api.queues.depth("mail"));
  note("bad queue", await caught(() => api.queues.pause("No Such")));
  note(
    "unattended",
    (await api.queues.unattended()).map(({ queue }) => queue),
  );
  note("maintenance", (await api.maintenance.begin({ reason: "move" })).reason);
  note("status", (await api.maintenance.status())?.reason);
  await api.maintenance.end();
  note("over", await api.maintenance.status());
  note("purged", await api.queues.purge("mail", { onProgress: (count) => note("purging", count) }));
  note(
    "dead",
    (await api.deadLetters.list()).jobs.map(({ type, deadLetter }) => [type, deadLetter]),
  );
  note("dead count", await api.deadLetters.count());
  note("dry", await api.deadLetters.retryAll({ queue: "cards" }, { dryRun: true }));
  note("refused", await caught(() => api.bulk.cancel({})));
  note("counted", await api.bulk.count({ queue: "cards" }));
  note("prioritised", await api.bulk.prioritise({ queue: "cards" }, { priority: 5 }));
  note("bulk", await api.bulk.cancel({ queue: "cards" }, { limit: 1 }));
  note("bulk rest", await api.bulk.cancel({ all: true }));
  note("deleted dead", await api.deadLetters.deleteAll({ queue: "cards" }));
  note("deleted", (await api.bulk.delete({ queue: "mail" })).done);
  note("stats", Object.keys(await api.stats()));
  note(
    "advice",
    (await api.advise()).map(({ type, text }) => [type, text]),
  );
}

async function crons(api: CurfewApi, note: Note): Promise<void> {
  const input = { job: charge, payload: { order: "9" }, cron: "0 9 * * *", zone: "Europe/Berlin" };
  note("cron", await api.crons.put("daily", { ...input, options: { priority: 2 } }));
  note("known cron", await caught(() => api.crons.put("daily", { ...input, ifExists: "refuse" })));
  note("bad cron", await caught(() => api.crons.put("other", { ...input, cron: "61 * * * *" })));
  note("updated", (await api.crons.update("daily", { cron: "0 10 * * *" })).cron);
  note("paused", (await api.crons.pause("daily")).isPaused);
  note("resumed", (await api.crons.resume("daily")).isPaused);
  const run = await api.crons.trigger("daily");
  note("triggered", await run.result({ within: "1m" }));
  note(
    "listed",
    (await api.crons.list()).map(({ name, runs }) => [name, runs.length]),
  );
  note("preview", await api.crons.preview("daily", { count: 2, from: "2030-01-01T00:00:00Z" }));
  note("deleted", [
    await api.crons.delete("daily"),
    await api.crons.delete("daily"),
    await api.crons.get("daily"),
  ]);
}

async function workflows(api: CurfewApi, note: Note): Promise<void> {
  const pay = (name: string, fail = false) => step(charge, { order: name, fail });
  const done = await api.workflows.start(
    chain([pay("w1"), group([pay("w2"), pay("w3")]), batch([pay("w4")], { onComplete: pay("w5") })]),
    { name: "shop", meta: { a: 1 } },
  );
  note("workflow", await done.result({ within: "1m" }));
  note("view", await done.view());
  note(
    "steps",
    (await done.steps({ limit: 3 })).map((job) => job?.result),
  );
  const failed = await api.workflows.start(chain([pay("x1", true), pay("x2")]));
  note("failed workflow", await caught(() => failed.result({ within: "1m" })));
  note("cancelled too late", await caught(() => failed.cancel()));
  note(
    "workflows",
    (await api.workflows.list()).map(({ state, kind }) => [state, kind]),
  );
  note("no workflow", await caught(() => api.workflows.get("none").result({ within: "1s" })));
  note("not a node", await caught(() => api.workflows.start({ kind: "chain" })));
}

async function sagas(api: CurfewApi, note: Note): Promise<void> {
  const placed = await api.send(order, "placed", { id: "o-1" });
  note("reply", await placed.reply({ within: "1m" }));
  const handle = api.saga(order, "o-1");
  note("saga", await handle.load());
  note(
    "timeouts",
    (await handle.timeouts()).map(({ destination, key }) => [destination, key]),
  );
  note("messages", await handle.messages());
  note("not a message", await caught(() => api.send(order, "plaed" as never, { id: "o" } as never)));
  note(
    "sagas",
    (await api.sagas(order)).map(({ id }) => id),
  );
  note("after", await api.sagas(order, { after: "o-1" }));
  note("records", (await api.sagaRecords.list()).sagas.length);
  note(
    "detail",
    (await api.sagaRecords.get("order", "o-1"))?.timeouts.map(({ key }) => key),
  );
  note("revoked", [await handle.revoke("unpaid"), await handle.revoke("unpaid")]);
  note("ended", [await handle.end(), await handle.end()]);
}

async function timeouts(api: CurfewApi, note: Note): Promise<void> {
  const headers = { trace: "t", bytes: new Uint8Array([1, 2]) };
  const id = await api.timeouts.insert({
    destination: "d",
    dueAt: { hours: 1 },
    payload: [1],
    headers,
    key: "k",
  });
  note("timeout", await api.timeouts.get(id));
  note("known id", await caught(() => api.timeouts.insert({ id, destination: "d", dueAt: { hours: 1 } })));
  await api.timeouts.insertMany([{ destination: "e", dueAt: new Date("2040-01-01T00:00:00Z") }]);
  await api.timeouts.enqueue(charge, { order: "t" }, { dueAt: { hours: 3 }, key: "later" });
  note(
    "calendar",
    (await api.timeouts.calendar()).timeouts.map(({ destination }) => destination),
  );
  note("list", (await api.timeouts.list({ destination: "d" })).length);
  note("moved", (await api.timeouts.reschedule(id, { hours: 2 })).key);
  note("count", await api.timeouts.count());
  await api.timeouts.insert({ id: "due", destination: "f", dueAt: { seconds: 0 } }).catch(() => {});
  note("bad when", await caught(() => api.timeouts.insert({ destination: "f", dueAt: "never" as never })));
  note("not leased", await caught(() => api.timeouts.extend(id, "nobody")));
  note("revoked", await api.timeouts.revoke(id));
  note("cancelled", await api.timeouts.cancel({ destination: "e", key: "none" }));
  note("gone", await api.timeouts.get(id));
}

async function webhooksAndCalendars(api: CurfewApi, note: Note): Promise<void> {
  const events = ["job.completed"];
  const { webhook, secret } = await api.webhooks.create({ url: "https://example.com/hook", events });
  note("webhook", [webhook.events, webhook.active, typeof secret]);
  note("forbidden", await caught(() => api.webhooks.create({ url: "http://127.0.0.1/", events })));
  note("changed", (await api.webhooks.update(webhook.id, { ordered: true })).ordered);
  note("rotated", typeof (await api.webhooks.rotate(webhook.id)).secret);
  note("webhooks", (await api.webhooks.list()).length);
  note("no delivery", await api.webhooks.delivery("del_none"));
  note("deliveries", await api.webhooks.deliveries({ subscription: webhook.id }));
  note("deleted", [await api.webhooks.delete(webhook.id), await api.webhooks.get(webhook.id)]);
  const week = { mon: "09:00-17:00" };
  const days = [{ date: "2040-12-25", name: "Christmas" }];
  note("calendar put", (await api.calendars.put("bank", { zone: "Europe/Berlin", week, days })).moved);
  note("calendar", await api.calendars.get("bank"));
  note("calendars", (await api.calendars.list()).length);
  note("bad zone", await caught(() => api.calendars.put("bank", { zone: "Mars/Base", week })));
  note("explain", await api.calendars.explain(new Date("2040-01-01T00:00:00Z")));
  note("calendar deleted", [await api.calendars.delete("bank"), await api.calendars.get("bank")]);
}

async function events(api: CurfewApi, note: Note): Promise<void> {
  const stop = new AbortController();
  const following = api.journal.follow({ types: ["job.completed"], signal: stop.signal });
  const next = following.next();
  const job = await api.enqueue(charge, { order: "e" });
  await job.result({ within: "1m" });
  const { value } = await next;
  note("followed", [value?.name, value?.job === job.id]);
  stop.abort();
  note("ended", (await following.next()).done);
  note(
    "latest",
    (await api.journal.latest({ limit: 1, job: job.id })).events.map(({ name }) => name),
  );
  note(
    "first",
    (await api.journal.read({ limit: 1, types: ["job.enqueued"] })).events.map(({ name }) => name),
  );
}

/** The order of keys and the difference between an absent field and an undefined one do not count. */
function sorted(value: unknown): unknown {
  if (value === undefined) return "undefined";
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const known = Object.entries(value).filter(([, one]) => one !== undefined);
  return Object.fromEntries(
    known.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, one]) => [key, sorted(one)]),
  );
}

async function transcript(api: CurfewApi): Promise<string[]> {
  const lines: string[] = [];
  const ids = new Map<string, string>();
  const note: Note = (what, value) => {
    const plain = JSON.stringify(sorted(value))
      .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g, (id) => {
        if (!ids.has(id)) ids.set(id, `#${ids.size}`);
        return ids.get(id) as string;
      })
      .replaceAll(/\b1[0-9]{12}\b/g, "<instant>")
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<instant>")
      .replaceAll(/"by":\{[^}]*\}/g, '"by":"<by>"');
    lines.push(`${what}: ${plain}`);
  };
  for (const part of [jobs, unique, operate, crons, workflows, sagas, timeouts, webhooksAndCalendars, events])
    await part(api, note);
  return lines;
}

async function serving(): Promise<Engine> {
  const engine = await openEngine({ store: "memory:", logger: silentLogger, events: "durable" });
  engine.work({ processors, queues: { cards: { concurrency: 5 } } });
  engine.host([order]);
  return engine;
}

it("an engine and a client say the same to one script, over real HTTP", async () => {
  await using local = await serving();
  await using behind = await serving();
  const listening = await listen(createServer(behind), { port: 0 });
  onTestFinished(() => listening.close());
  await using client = openClient({ url: listening.url, logger: silentLogger });
  const [expected, actual] = [await transcript(local), await transcript(client)];
  expect(expected.length).toBeGreaterThan(105);
  expect(actual).toEqual(expected);
});
