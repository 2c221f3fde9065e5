import type { AuditEntry } from "../../../ojs/replies/wire-replies.ts";
import { limitText, plural } from "../../ui/format.ts";

const plain = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));

const below = (page: string) => (name: string) => `${page}/${encodeURIComponent(name)}`;

/** What an entry names that has a page, other than a job or a queue; and that page, below the base. */
const TARGETS: Readonly<Record<string, (name: string) => string>> = {
  worker: (worker) => `workers?worker=${encodeURIComponent(worker)}`,
  cron: below("crons"),
  subscription: below("webhooks"),
  calendar: below("calendars"),
  type: below("schemas"),
  tenant: () => "tenants",
};

export function namedTarget({ action, details = {} }: Pick<AuditEntry, "action" | "details">) {
  for (const [key, pathOf] of Object.entries(TARGETS)) {
    const name = details[key];
    if (typeof name === "string" && isTarget(key, action)) return { name, path: pathOf(name) };
  }
  return undefined;
}

/** Other actions name the type of their jobs, which is no target. */
const isTarget = (key: string, action: string) => key !== "type" || action.startsWith("schema.");
const MOST_JOBS = 3;
/** Limits are stored in milliseconds. */
const LIMITS = ["wait", "attempt", "grace", "heartbeat", "total"];

/** A bulk action names its jobs: one in a field of its own, several among the details. */
export function jobsText({ details = {} }: Pick<AuditEntry, "details">): string {
  return Array.isArray(details.jobs) ? plural(details.jobs.length, "job") : "–";
}

/** What the column "To" shows already is left out. */
export function detailsText({ action, details = {} }: Pick<AuditEntry, "action" | "details">): string {
  return Object.entries(details)
    .filter(([name]) => !(name in TARGETS && isTarget(name, action)))
    .map(([name, value]) => `${name} ${valueText(name, value)}`)
    .join(", ");
}

/** A bulk action has the ids of up to 200 jobs. */
function valueText(name: string, value: unknown): string {
  if (LIMITS.includes(name) && typeof value === "number") return limitText(value);
  if (name !== "jobs" || !Array.isArray(value) || value.length <= MOST_JOBS) return plain(value);
  return `${value.slice(0, MOST_JOBS).join(" ")} and ${value.length - MOST_JOBS} more`;
}
