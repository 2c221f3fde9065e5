/** What the client needs to know about a call, and which right of the server it needs. */
interface CallRule {
  readonly right: "read" | "enqueue" | "cancel" | "work" | "operate";
  /** A second request would do it twice, or answer differently: after a lost reply the client does not repeat it. */
  readonly isOnce?: true;
}

const READ: CallRule = { right: "read" };
const ENQUEUE: CallRule = { right: "enqueue" };
const WORK: CallRule = { right: "work" };
const OPERATE: CallRule = { right: "operate" };
const OPERATE_ONCE: CallRule = { right: "operate", isOnce: true };

/**
 * Methods of the engine that are served under their own names: `POST /ojs/v1/calls/queues.pause` with `{"args":["mail"]}`.
 * Our client sends these where Open Job Spec has no words for all that a method takes and returns.
 */
export const CALLS = {
  "jobs.load": READ,
  "jobs.result": READ,
  "jobs.find": READ,
  "jobs.cancel": { right: "cancel" },
  "jobs.extend": OPERATE,
  "jobs.retry": OPERATE_ONCE,
  "jobs.activate": OPERATE_ONCE,
  "jobs.prioritise": OPERATE,
  "jobs.runNow": OPERATE_ONCE,
  "jobs.reschedule": OPERATE,
  "jobs.explain": READ,
  "jobs.why": READ,
  "jobs.progress": READ,
  "jobs.checkpoint": READ,
  "jobs.clearCheckpoint": WORK,
  "jobs.logs": READ,
  // A line has everything, also what is redacted for people.
  "jobs.export": OPERATE,
  "jobs.import": OPERATE,
  "queues.configure": OPERATE,
  "queues.reset": OPERATE,
  "queues.pause": OPERATE,
  "queues.resume": OPERATE,
  "queues.list": READ,
  "queues.describe": READ,
  "queues.depth": READ,
  "queues.unattended": READ,
  "queues.oldestWaits": READ,
  "queues.purge": OPERATE,
  "maintenance.status": READ,
  "maintenance.begin": OPERATE,
  "maintenance.end": OPERATE,
  "limits.put": OPERATE,
  "limits.delete": OPERATE,
  "limits.get": READ,
  "limits.list": READ,
  "crons.put": OPERATE,
  "crons.update": OPERATE,
  "crons.pause": OPERATE,
  "crons.resume": OPERATE,
  "crons.trigger": OPERATE_ONCE,
  "crons.delete": OPERATE_ONCE,
  "crons.get": READ,
  "crons.list": READ,
  "crons.preview": READ,
  // Addresses of endpoints have tokens in them, so reading needs an operator too.
  "webhooks.create": OPERATE_ONCE,
  "webhooks.update": OPERATE,
  "webhooks.delete": OPERATE_ONCE,
  "webhooks.get": OPERATE,
  "webhooks.list": OPERATE,
  "webhooks.rotate": OPERATE_ONCE,
  "webhooks.test": OPERATE_ONCE,
  "webhooks.deliveries": OPERATE,
  "webhooks.delivery": OPERATE,
  "webhooks.redeliver": OPERATE_ONCE,
  "calendars.put": OPERATE,
  "calendars.delete": OPERATE_ONCE,
  "calendars.get": READ,
  "calendars.list": READ,
  "calendars.explain": READ,
  "workflows.start": ENQUEUE,
  "workflows.view": READ,
  "workflows.steps": READ,
  "workflows.list": READ,
  "workflows.cancel": { right: "cancel", isOnce: true },
  "workflows.result": READ,
  "bulk.count": READ,
  "bulk.cancel": OPERATE,
  "bulk.retry": OPERATE_ONCE,
  "bulk.delete": OPERATE,
  "bulk.prioritise": OPERATE,
  "deadLetters.list": READ,
  "deadLetters.get": READ,
  "deadLetters.count": READ,
  "deadLetters.retry": OPERATE_ONCE,
  "deadLetters.retryAll": OPERATE_ONCE,
  "deadLetters.delete": OPERATE_ONCE,
  "deadLetters.deleteAll": OPERATE,
  "timeouts.insert": ENQUEUE,
  "timeouts.enqueue": { right: "enqueue", isOnce: true },
  "timeouts.get": READ,
  "timeouts.calendar": READ,
  "timeouts.list": READ,
  "timeouts.cancel": { right: "cancel", isOnce: true },
  "timeouts.revoke": OPERATE_ONCE,
  "timeouts.reschedule": OPERATE,
  "timeouts.revive": OPERATE_ONCE,
  "timeouts.requeue": OPERATE_ONCE,
  "timeouts.nextDueAt": READ,
  "timeouts.count": READ,
  "timeouts.claimDue": WORK,
  "timeouts.remove": { right: "work", isOnce: true },
  "timeouts.release": { right: "work", isOnce: true },
  "timeouts.extend": WORK,
  "timeouts.reap": WORK,
  "journal.read": READ,
  "journal.latest": READ,
  "journal.wait": READ,
  "audit.read": READ,
  "sagas.list": READ,
  "sagas.after": READ,
  "sagas.load": READ,
  "sagas.get": READ,
  "sagas.timeouts": READ,
  "sagas.messages": READ,
  "sagas.send": ENQUEUE,
  "sagas.reply": READ,
  "sagas.revoke": OPERATE_ONCE,
  "sagas.end": OPERATE_ONCE,
  "sagas.compensate": OPERATE_ONCE,
  stats: READ,
  advise: READ,
} as const satisfies Readonly<Record<string, CallRule>>;

export type CallName = keyof typeof CALLS;

export function isOnce(name: CallName): boolean {
  const rule: CallRule = CALLS[name];
  return rule.isOnce === true;
}

/** The path of a call below BASE. */
export function callPath(name: CallName): string {
  return `/calls/${name}`;
}

/** A step of a bulk action: the server replies after some seconds at the latest, and the client continues. */
export interface BulkStep {
  /** When the first step began: later steps leave out jobs that came after it. */
  readonly startedAt: number;
}

/** The reply to a call that waits: it ends without a value when the time is up. */
export type Awaited<Value> = { readonly isDone: false } | { readonly isDone: true; readonly value: Value };
