import { type By, parseBy } from "../../core/audit/audit-entry.ts";
import { CurfewError, refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { UUID } from "../../core/ids.ts";
import { WEBHOOK_QUEUE } from "../../core/job/internal-queue.ts";
import { dueAtOf, type JobRow } from "../../core/job/job.ts";
import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import { commitUnits } from "../commit/commit.ts";
import { admission } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { auditEffects } from "../events/audit-log.ts";
import { findJobs, parsePage } from "../find/find-jobs.ts";
import { type JobQuery, parseQuery } from "../find/job-query.ts";
import { operate } from "../operations/operate-job.ts";
import { deliveryId } from "./deliverer.ts";
import { DeliveryMaker, type DeliveryPayload, subjectOf } from "./delivery-jobs.ts";
import type { FollowerDeps } from "./follower.ts";
import { WEBHOOKS } from "./webhook-records.ts";

export const DELIVERY_STATES = ["waiting", "calling", "retrying", "delivered", "dead", "cancelled"] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

export interface DeliveryView {
  /** `del_` and the id of its job. */
  readonly id: string;
  readonly subscription: string;
  readonly state: DeliveryState;
  /** The events that it carries. */
  readonly events: readonly { readonly id: string; readonly name: string; readonly job: string | null }[];
  /** Calls that were made. */
  readonly attempts: number;
  readonly createdAt: Instant;
  readonly endedAt: Instant | null;
  /** When it is tried next; null unless it waits. */
  readonly nextAt: Instant | null;
  /** What the endpoint answered in the end. */
  readonly answer: { readonly status: number; readonly elapsed: number; readonly text: string } | null;
  /** Failed calls, the oldest first. */
  readonly errors: readonly {
    readonly at: Instant;
    readonly attempt: number;
    readonly code: string;
    readonly message: string;
  }[];
  /** The delivery that this one repeats. */
  readonly repeats: string | null;
}

export interface DeliveriesOptions {
  /** The id of a subscription. Default: all. */
  readonly subscription?: string;
  readonly state?: DeliveryState;
  /** The cursor of the page before. */
  readonly after?: string | null;
  /** From 1 to 1,000; default 100. A page may be shorter and still not be the last. */
  readonly limit?: number;
}

export interface DeliveryPage {
  /** The newest first. */
  readonly deliveries: readonly DeliveryView[];
  readonly cursor: string | null;
}

const QUERIES: Readonly<Record<DeliveryState, Pick<JobQuery, "state" | "isLive">>> = {
  waiting: { isLive: true },
  calling: { state: "active" },
  retrying: { state: "retryable" },
  delivered: { state: "completed" },
  dead: { state: "discarded" },
  cancelled: { state: "cancelled" },
};

/** Deliveries are jobs, so their log is the jobs that are kept: a day if they were delivered, else 14 days. */
export class DeliveryLog {
  readonly #context: EngineContext;
  readonly #host: FollowerDeps;

  constructor(context: EngineContext, host: FollowerDeps) {
    this.#context = context;
    this.#host = host;
  }

  async list(options: DeliveriesOptions): Promise<DeliveryPage> {
    refuseUnknownKeys(options, "deliveries", ["subscription", "state", "after", "limit"]);
    const { subscription, state, after = null, limit = 100 } = options;
    if (state !== undefined && !DELIVERY_STATES.includes(state))
      throw refuse("invalid_option", "state", state, `use one of ${DELIVERY_STATES.join(", ")}`);
    const query = parseQuery(
      {
        queue: WEBHOOK_QUEUE,
        ...(state !== undefined && QUERIES[state]),
        ...(subscription !== undefined && { text: `{"subscription":${JSON.stringify(subscription)},` }),
      },
      "deliveries",
    );
    const page = parsePage({ after, limit, newestFirst: true }, "deliveries");
    const { jobs, cursor } = await findJobs(this.#context.store, query, page);
    const deliveries = jobs.map(viewOf).filter((view) => state === undefined || view.state === state);
    return { deliveries, cursor };
  }

  async get(id: string): Promise<DeliveryView | null> {
    const row = await this.#row(id);
    return row && viewOf(row);
  }

  /**
   * Sends a delivery again, under its own id: a dead one begins anew, one that waits is due now, and one that was delivered
   * is made a second time.
   */
  async redeliver(id: string, by?: By): Promise<DeliveryView> {
    const row = await this.#row(id);
    if (!row) throw unknownDelivery("redeliver", id);
    if (row.state === "discarded") return this.#operated(row, "retry", by);
    if (row.state === "scheduled" || row.state === "retryable") return this.#operated(row, "run", by);
    if (row.state === "completed" || row.state === "cancelled") return this.#repeat(row, by);
    const text = `redeliver: delivery ${id} is ${stateOf(row)}; it is called as soon as its endpoint has room`;
    throw new CurfewError("invalid_state", text);
  }

  async #operated(row: JobRow, type: "retry" | "run", by: By | undefined): Promise<DeliveryView> {
    return viewOf(await operate(this.#context, row.id, { type }, by));
  }

  async #repeat(row: JobRow, by: By | undefined): Promise<DeliveryView> {
    const { subscription: id, events, repeats = deliveryId(row.id) } = payloadOf(row);
    const { store, clock } = this.#context;
    const record = await WEBHOOKS.load(store, id);
    if (!record) throw new CurfewError("not_found", `redeliver: the subscription ${id} was deleted`);
    const now = clock.now();
    const maker = new DeliveryMaker(id, record.body, this.#host.context(), now);
    const [first] = events;
    const texts = events.map((event) => JSON.stringify(event));
    const job = maker.make(first ? subjectOf(first) : id, texts, repeats);
    const { limitKey = "", options } = job;
    const about = { details: { subscription: id, delivery: repeats } };
    const effects = [
      { enqueue: job },
      admission({ limitKey, options }),
      ...auditEffects(this.#context, by && parseBy(by), "webhook.redeliver", about, now),
    ];
    await commitUnits(this.#context, [{ effects }]);
    this.#host.notice([job]);
    return (await this.get(deliveryId(job.id))) as DeliveryView;
  }

  async #row(id: string): Promise<JobRow | null> {
    const job = id.replace(/^del_/, "");
    if (!UUID.test(job)) return null;
    const [row] = await this.#context.store.jobs.load([job]);
    return row?.queue === WEBHOOK_QUEUE ? row : null;
  }
}

function payloadOf({ payload }: JobRow): DeliveryPayload {
  return JSON.parse(payload) as DeliveryPayload;
}

function stateOf({ state }: JobRow): DeliveryState {
  if (state === "active") return "calling";
  if (state === "retryable") return "retrying";
  if (state === "completed") return "delivered";
  if (state === "discarded") return "dead";
  return state === "cancelled" ? "cancelled" : "waiting";
}

function viewOf(row: JobRow): DeliveryView {
  const { subscription, events, repeats = null } = payloadOf(row);
  const isWaiting = row.state === "scheduled" || row.state === "retryable" || row.state === "available";
  return {
    id: deliveryId(row.id),
    subscription,
    state: stateOf(row),
    events: events.map(({ id, name, job = null }) => ({ id, name, job })),
    attempts: row.attempt,
    createdAt: row.createdAt,
    endedAt: row.finishedAt,
    nextAt: isWaiting ? dueAtOf(row.rank) : null,
    answer: row.result === null ? null : (JSON.parse(row.result) as DeliveryView["answer"] & Json),
    errors: (row.errors ?? []).map(({ at, attempt, code, message }) => ({ at, attempt, code, message })),
    repeats,
  };
}

function unknownDelivery(call: string, id: string): CurfewError {
  return new CurfewError(
    "not_found",
    `${call}: there is no delivery ${JSON.stringify(id)}; its retention may be over`,
  );
}
