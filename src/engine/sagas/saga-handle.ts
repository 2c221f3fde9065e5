import { type By, parseBy } from "../../core/audit/audit-entry.ts";
import type { RegisteredUndo, SagaPlan } from "../../core/saga/saga.ts";
import type { Compensation, SagaRecord } from "../../core/saga/saga-record.ts";
import type { Instant } from "../../core/time.ts";
import type { TimeoutRow } from "../../core/timeout/timeout.ts";
import { changeRecord } from "../commit/commit.ts";
import type { StoredRecord } from "../commit/record-kind.ts";
import { auditEffects } from "../events/audit-log.ts";
import type { Chains } from "../runtime/serial-by-key.ts";
import { compensate } from "./compensate.ts";
import { mailKeyOf, nameOf, recordKeyOf, SAGAS, type SagaName, sagaName } from "./saga-addresses.ts";
import type { StepContext } from "./saga-runner.ts";
import { writeOf } from "./write-record.ts";

export interface SagaView<State = unknown> {
  readonly type: string;
  readonly id: string;
  readonly state: State;
  /** Grows with each step. */
  readonly version: number;
  readonly startedAt: Instant;
  readonly changedAt: Instant;
  /** Null while it is alive. */
  readonly completedAt: Instant | null;
  readonly pending: SagaRecord["pending"];
  /** How its steps so far would be taken back, the newest last. */
  readonly undos: readonly RegisteredUndo[];
  /** Null for a saga that is not and was not compensated. */
  readonly compensation: Compensation | null;
}

export function viewOf<State>({ name, version, body }: StoredRecord<SagaRecord>): SagaView<State> {
  const { type, id } = nameOf(SAGAS.key(name));
  const { state, startedAt, changedAt, completedAt, pending, undos = [], compensation = null } = body;
  const times = { startedAt, changedAt, completedAt };
  return { type, id, state: state as State, version, ...times, pending, undos, compensation };
}

const PAGE = 1_000;

/** One saga, for reading and operating it. */
export class SagaHandle<State = unknown> {
  readonly type: string;
  readonly id: string;
  readonly #context: StepContext;
  readonly #plan: Pick<SagaPlan, "type" | "retention">;
  readonly #chains: Chains;

  constructor(context: StepContext, plan: Pick<SagaPlan, "type" | "retention">, id: string, chains: Chains) {
    this.#context = context;
    this.#plan = plan;
    this.#chains = chains;
    this.type = plan.type;
    this.id = id;
  }

  get #name(): SagaName {
    return { type: this.type, id: this.id };
  }

  /** The saga, or null. A completed saga can be read until its retention ends. */
  async load(): Promise<SagaView<State> | null> {
    const stored = await SAGAS.load(this.#context.store, sagaName(this.#name));
    return stored && viewOf(stored);
  }

  /** Its pending and dead timeouts. */
  timeouts(): Promise<TimeoutRow[]> {
    return this.#context.store.timeouts.list({ saga: recordKeyOf(this.#name) }, null, PAGE);
  }

  /** Its waiting and dead messages, in the order of arrival. */
  messages(): Promise<TimeoutRow[]> {
    return this.#context.store.timeouts.list({ saga: mailKeyOf(this.#name) }, null, PAGE);
  }

  /**
   * Revokes a timeout by key or id. After `revoked`, its handler cannot commit, and this process does not start it.
   * Another process may still start it; its step is then refused.
   */
  async revoke(keyOrId: string, by?: By): Promise<"revoked" | "not-pending"> {
    return this.#change("saga.revoke", by, (record) => {
      const pending = record.pending.find(({ id, key }) => id === keyOrId || key === keyOrId);
      // A saga that is being taken back would wait for ever without its next undo.
      if (!pending || record.compensation) return null;
      return {
        record: { ...record, pending: record.pending.filter((one) => one !== pending) },
        ids: [pending.id],
      };
    }).then((isChanged) => (isChanged ? "revoked" : "not-pending"));
  }

  /**
   * Takes the saga back: revokes what is pending and runs its undos, the last one first. After an undo that was given up,
   * it goes on with that one. Resolves when this is durable; null if there is no live saga.
   */
  compensate(by?: By): Promise<"begun" | "resumed" | "running" | null> {
    const { retention } = this.#plan;
    const operator = by && parseBy(by);
    const run = () => compensate(this.#context, this.#name, "operator", { retention, by: operator });
    return this.#chains.run(sagaName(this.#name), run);
  }

  /** Completes the saga without a handler and revokes its pending timeouts. Returns whether it was alive. */
  end(by?: By): Promise<boolean> {
    return this.#change("saga.end", by, (record) => ({
      record: { ...record, pending: [], completedAt: this.#context.clock.now() },
      ids: record.pending.map(({ id }) => id),
    }));
  }

  /** Changes a live saga: after the running steps of this process, and guarded against steps of others. */
  #change(
    action: string,
    by: By | undefined,
    change: (record: SagaRecord) => { readonly record: SagaRecord; readonly ids: readonly string[] } | null,
  ): Promise<boolean> {
    const name = sagaName(this.#name);
    const actor = by && parseBy(by);
    return this.#chains.run(name, async () => {
      const changed = await changeRecord(this.#context, "saga", SAGAS, name, (record, now) => {
        const next = record?.completedAt === null ? change(record) : null;
        if (!next) return null;
        const about = { details: { type: this.type, saga: this.id } };
        const effects = [
          ...next.ids.map((id) => ({ revoke: { id } })),
          ...auditEffects(this.#context, actor, action, about, now),
        ];
        return { ...writeOf(this.#plan, { ...next.record, changedAt: now }), effects };
      });
      return changed !== null;
    });
  }
}
