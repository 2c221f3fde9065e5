import { type By, changedBy, parseBy } from "../../core/audit/audit-entry.ts";
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
  /** The reason that people see, up to 500 characters. */
  readonly reason?: string;
  /** Ends it after this time. Default: it lasts until an operator ends it. */
  readonly for?: Duration;
  /** The expected duration. It is only shown. */
  readonly estimate?: Duration;
}

/**
 * Maintenance: no queue hands out jobs and no cron fires, in all processes that share the store. This process stops at
 * once, the others within five seconds. Enqueues are accepted, running jobs go on, and all deadlines are kept.
 */
export class Maintenance {
  readonly #context: EngineContext;
  readonly #readyAll: () => void;

  constructor(context: EngineContext, readyAll: () => void) {
    this.#context = context;
    this.#readyAll = readyAll;
  }

  /** Null while there is none. */
  async status(): Promise<MaintenanceView | null> {
    const record = await MAINTENANCE.load(this.#context.store, MAINTENANCE_NAME);
    return maintenanceIn(record, this.#context.clock.now());
  }

  /** Begins maintenance, or changes its options. */
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
    const now = this.#context.clock.now();
    const after = (duration: Duration | undefined, field: string) =>
      duration === undefined ? null : now + parseDuration(duration, field);
    const before = await this.status();
    const view: MaintenanceView = {
      reason,
      startedAt: before?.startedAt ?? now,
      endsAt: after(options.for, "maintenance.for"),
      estimatedEnd: after(options.estimate, "maintenance.estimate"),
      by: changedBy(by && parseBy(by), this.#context.host),
    };
    const { by: _who, ...details } = view;
    await this.#write(MAINTENANCE.put(MAINTENANCE_NAME, view, view.endsAt), "begin", by, details);
    return view;
  }

  /** Ends maintenance. */
  async end(by?: By): Promise<void> {
    await this.#write(MAINTENANCE.remove(MAINTENANCE_NAME), "end", by, {});
    this.#readyAll();
  }

  async #write(
    effect: Effect,
    action: "begin" | "end",
    by: By | undefined,
    details: { readonly [key: string]: Json },
  ): Promise<void> {
    this.#context.assertOpen();
    const now = this.#context.clock.now();
    const entry = auditEffects(this.#context, by && parseBy(by), `maintenance.${action}`, { details }, now);
    await commitUnits(this.#context, [{ effects: [effect, ...entry] }]);
    await this.#context.queues.refresh();
  }
}
