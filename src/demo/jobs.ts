/** The jobs of a shop, each with limits that are short enough to be watched. */
import { type AnyDefinition, defineJob, unchecked } from "../core/job/job-definition.ts";
import { constant, exponential } from "../core/job/policy/retry.ts";

/** A demo may run for days: what has ended goes soon. */
const retention = { completed: "20m", discarded: "1h", cancelled: "1h", deadLetter: "1h" } as const;

const soon = constant({ first: "3s", jitter: false });

export const mail = defineJob({
  type: "mail.send",
  queue: "mail",
  payload: unchecked<{ to: string; template?: string }>(),
  timeouts: { wait: "10m", attempt: "10s" },
  retention,
});

/** Now and then close to its limit, and now and then after it. */
export const resize = defineJob({
  type: "image.resize",
  queue: "media",
  payload: unchecked<{ file: string; takes: number }>(),
  timeouts: { attempt: "2s", grace: "1s" },
  retention,
});

/** Runs in a sandbox. Some of its pages make it loop without an end. */
export const render = defineJob({
  type: "report.render",
  queue: "reports",
  payload: unchecked<{ customer: string; pages: number; brokenPage: number; loops: number }>(),
  timeouts: { attempt: "6s", grace: "2s", total: "2m" },
  retry: { attempts: 2, backoff: soon },
  retention,
});

/** Does not listen to its signal, so it is ended by force and its handler is stuck for a while. */
export const upload = defineJob({
  type: "backup.upload",
  queue: "files",
  payload: unchecked<{ bucket: string }>(),
  timeouts: { attempt: "8s", grace: "4s" },
  retry: { attempts: 1 },
  retention,
});

/** Fails more often than not, with a growing delay between the attempts, within two minutes in all. */
export const webhook = defineJob({
  type: "webhook.deliver",
  queue: "webhooks",
  payload: unchecked<{ url: string; event: string }>(),
  timeouts: { attempt: "5s", total: "2m" },
  retry: { attempts: 6, backoff: exponential({ first: "2s", max: "30s" }) },
  retention,
});

/** Another company's interface, which takes twelve calls a minute. */
export const sync = defineJob({
  type: "crm.sync",
  queue: "crm",
  payload: unchecked<{ contact: number }>(),
  timeouts: { wait: "5m", attempt: "10s" },
  limit: { key: "crm interface", concurrency: 2, rate: { limit: 12, per: "1m" } },
  retention,
});

/** Beats as it goes. Its first attempt falls silent, the second goes on from the checkpoint. */
export const reindex = defineJob({
  type: "search.index",
  queue: "search",
  payload: unchecked<{ index: string; pages: number }>(),
  timeouts: { attempt: "2m", heartbeat: "5s", grace: "3s", total: "5m" },
  retry: { attempts: 3, backoff: soon },
  unique: { payload: ["index"] },
  retention,
});

/** What is declined twice is a dead letter. */
export const charge = defineJob({
  type: "card.charge",
  queue: "payments",
  payload: unchecked<{ order: string; cents: number; card: string; isDeclined: boolean }>(),
  redact: ["payload.card"],
  timeouts: { attempt: "10s", total: "1m" },
  retry: { attempts: 2, backoff: soon, onExhausted: "dead-letter" },
  retention,
});

/** One at a time, six seconds each: those behind wait for longer than they may. */
export const offer = defineJob({
  type: "offer.send",
  queue: "offers",
  payload: unchecked<{ to: string }>(),
  fair: ({ to }) => to.replace(/-.*/, ""),
  timeouts: { wait: "10s", attempt: "10s" },
  retention,
});

/** Takes longer than its limit, unless an operator grants it more. */
export const ledger = defineJob({
  type: "ledger.close",
  queue: "payments",
  payload: unchecked<{ month: string }>(),
  timeouts: { attempt: "20s", grace: "5s" },
  retry: { attempts: 1 },
  retention,
});

/** Listens to its signal: an operator cancels it. */
export const encode = defineJob({
  type: "video.encode",
  queue: "media",
  payload: unchecked<{ file: string }>(),
  timeouts: { attempt: "5m", heartbeat: "30s" },
  retention,
});

/** Nobody works on its queue. */
export const archive = defineJob({
  type: "archive.pack",
  queue: "archive",
  payload: unchecked<{ year: number }>(),
  timeouts: { wait: "15m" },
  retention,
});

export const newsletter = defineJob({
  type: "newsletter.send",
  queue: "mail",
  payload: unchecked<{ issue: number }>(),
  timeouts: { wait: "1d" },
  retention,
});

export const rates = defineJob({
  type: "rates.refresh",
  queue: "search",
  timeouts: { attempt: "10s" },
  retention,
});

const ofOrder = { payload: unchecked<{ order: string }>(), timeouts: { attempt: "10s" }, retention } as const;
export const check = defineJob({ type: "order.check", queue: "orders", ...ofOrder });
export const reserve = defineJob({ type: "stock.reserve", queue: "orders", ...ofOrder });
export const pack = defineJob({ type: "order.pack", queue: "orders", ...ofOrder });
export const ship = defineJob({
  type: "order.ship",
  queue: "orders",
  ...ofOrder,
  payload: unchecked<{ order: string; isRefused: boolean }>(),
  retry: { attempts: 2, backoff: soon },
});

export const DEFINITIONS: readonly AnyDefinition[] = [
  mail,
  resize,
  render,
  upload,
  webhook,
  sync,
  reindex,
  charge,
  offer,
  ledger,
  encode,
  archive,
  newsletter,
  rates,
  check,
  reserve,
  pack,
  ship,
] as readonly AnyDefinition[];
