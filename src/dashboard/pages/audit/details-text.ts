import type { AuditEntry } from "../../api/wire.ts";
import { limitText } from "../../ui/format.ts";

const plain = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));

/** What the column "To" shows already. */
const SHOWN_AS_TARGET = ["worker", "cron"];
/** Limits are stored in milliseconds. */
const LIMITS = ["wait", "attempt", "grace", "heartbeat", "total"];

export function detailsText(details: AuditEntry["details"] = {}): string {
  return Object.entries(details)
    .filter(([name]) => !SHOWN_AS_TARGET.includes(name))
    .map(([name, value]) =>
      LIMITS.includes(name) && typeof value === "number"
        ? `${name} ${limitText(value)}`
        : `${name} ${plain(value)}`,
    )
    .join(", ");
}
