import { type By, parseBy } from "../../core/audit/audit-entry.ts";
import { refuse, refuseUnknownKeys } from "../../core/errors.ts";
import type { Json } from "../../core/schema.ts";
import { type Duration, parseDuration } from "../../core/time.ts";
import type { Effect } from "../../ports/store.ts";
import { commitUnits } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";
import { auditEffects } from "../events/audit-log.ts";
import { MAINTENANCE, MAINTENANCE_NAME, type MaintenanceView, maintenanceIn } from "./maintenance-record.ts";

const REASON_LIMIT = 500;

export interface MaintenanceOptions {
  /** What is being done, for those who wonder: up to 500 characters. */
  readonly reason?: string;
  /** It ends by itself after this time. Without it, it lasts until somebody ends it. */
  readonly for?: Duration;
  /** How long it will most likely take; only shown. */
  readonly estimate?: Duration;
}

/**
 * A time in which no job is handed out, from any queue, and no cron fires, in all processes that share the store: at once
 * in this one, in the others within five seconds. Jobs are taken in as always, those that run go on, and all deadlines
 * are kept.
 */
export class Maintenance {
  readonly #parts: EngineContext;
  readonly #host: { assertOpen(): void; readyAll(): void };

  constructor(parts: EngineContext, host: { assertOpen(): void; readyAll(): void }) {
    this.#parts = parts;
    this.#host = host;
  }

  /** Null while there is none. */
  async status(): Promise<MaintenanceView | null> {
    const record = await MAINTENANCE.load(this.#parts.store, MAINTENANCE_NAME);
    return maintenanceIn(record, this.#parts.clock.now());
  }

  /** Begins it, or changes what was said about it. */
  async begin(options: MaintenanceOptions = {}, by?: By): Promise<MaintenanceView> {
    refuseUnknownKeys(options, "maintenance", ["reason", "for", "estimate"]);
    const { reason = null } = options;
    if (reason !== null && (typeof reason !== "string" || reason.length > REASON_LIMIT))
      throw refuse(
        "invalid_option",
        "maintenance.reason",
        reason,
        `write a text of up to ${REASON_LIMIT} characters`,
      );
    const now = this.#parts.clock.now();
    const after = (said: Duration | undefined, field: string) =>
      said === undefined ? null : now + parseDuration(said, field);
    const before = await this.status();
    const view: MaintenanceView = {
      reason,
      startedAt: before?.startedAt ?? now,
      endsAt: after(options.for, "maintenance.for"),
      estimatedEnd: after(options.estimate, "maintenance.estimate"),
    };
    await this.#write(MAINTENANCE.put(MAINTENANCE_NAME, view, view.endsAt), "begin", by, { ...view });
    return view;
  }

  /** Lets work go on. */
  async end(by?: By): Promise<void> {
    await this.#write(MAINTENANCE.remove(MAINTENANCE_NAME), "end", by, {});
    this.#host.readyAll();
  }

  async #write(
    effect: Effect,
    action: "begin" | "end",
    by: By | undefined,
    details: { readonly [key: string]: Json },
  ): Promise<void> {
    this.#host.assertOpen();
    const now = this.#parts.clock.now();
    const entry = auditEffects(this.#parts, by && parseBy(by), `maintenance.${action}`, { details }, now);
    await commitUnits(this.#parts, [{ effects: [effect, ...entry] }]);
    await this.#parts.queues.refresh();
  }
}
