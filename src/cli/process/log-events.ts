import type { openEngine } from "../../open.ts";
import type { Logger } from "../../ports/log.ts";

type Engine = Awaited<ReturnType<typeof openEngine>>;

/** The events that are logged, each with its level. The metrics count the others. */
const LEVELS = {
  "job.discarded": "warn",
  "job.stuck": "warn",
  "job.killed": "warn",
  "job.stalled": "info",
  "job.timeout": "info",
  "job.total_timeout": "info",
  "job.ttl_expired": "info",
  "job.unknown_type": "warn",
  "job.enqueued": "debug",
  "job.scheduled": "debug",
  "job.started": "debug",
  "job.completed": "debug",
  "job.failed": "debug",
  "job.retrying": "debug",
  "job.cancelled": "debug",
  "worker.blocked": "warn",
  "worker.unready": "warn",
  "worker.ready": "info",
  "sandbox.broken": "error",
  "sandbox.mended": "info",
} as const;

/** Logs events of the engine. Without `isDebug`, debug events get no listener, since each line costs time. */
export function logEvents(engine: Engine, logger: Logger, isDebug: boolean): void {
  for (const [name, level] of Object.entries(LEVELS) as [keyof typeof LEVELS, "debug" | "info" | "warn"][]) {
    if (level === "debug" && !isDebug) continue;
    engine.on(name, (event) => logger[level](fieldsOf(event), name.replaceAll(/[._]/g, " ")));
  }
}

function fieldsOf(event: object): object {
  const { name: _name, at: _at, error, ...fields } = event as { name?: string; at?: number; error?: unknown };
  if (typeof error !== "object" || error === null) return fields;
  const { code, message } = error as { code?: string; message?: string };
  return { ...fields, code, error: message };
}
