import type { SagaPlan } from "../../core/saga/saga.ts";
import type { SagaRecord } from "../../core/saga/saga-record.ts";
import type { Instant } from "../../core/time.ts";
import type { TimeoutRow } from "../../core/timeout/timeout.ts";
import { changeRecord } from "../commit/commit.ts";
import type { StoredRecord } from "../commit/records.ts";
import type { Chains } from "../runtime/serial-by-key.ts";
import { mailKeyOf, nameOf, recordKeyOf, SAGAS, type SagaName, sagaName } from "./saga-addresses.ts";
import { type RunnerParts, writeOf } from "./saga-runner.ts";

/** A saga as it stands. */
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
}

export function viewOf<State>({ name, version, body }: StoredRecord<SagaRecord>): SagaView<State> {
  const { type, id } = nameOf(SAGAS.key(name));
  const { state, startedAt, changedAt, completedAt, pending } = body;
  return { type, id, state: state as State, version, startedAt, changedAt, completedAt, pending };
}

const PAGE = 1_000;

/** One saga, for those who look at it or operate it. */
export class SagaHandle<State = unknown> {
  readonly type: string;
  readonly id: string;
  readonly #parts: RunnerParts;
  readonly #plan: SagaPlan;
  readonly #chains: Chains;

  constructor(parts: RunnerParts, plan: SagaPlan, id: string, chains: Chains) {
    this.#parts = parts;
    this.#plan = plan;
    this.#chains = chains;
    this.type = plan.type;
    this.id = id;
  }

  get #name(): SagaName {
    return { type: this.type, id: this.id };
  }

  /** The saga as it stands, or null; one that is completed is there for its retention. */
  async load(): Promise<SagaView<State> | null> {
    const stored = await SAGAS.load(this.#parts.store, sagaName(this.#name));
    return stored && viewOf(stored);
  }

  /** Its pending timeouts with their instants, those that were given up included. */
  timeouts(): Promise<TimeoutRow[]> {
    return this.#parts.store.timeouts.list({ saga: recordKeyOf(this.#name) }, null, PAGE);
  }

  /** Messages that wait for it in the order of their arrival, those that were given up included. */
  messages(): Promise<TimeoutRow[]> {
    return this.#parts.store.timeouts.list({ saga: mailKeyOf(this.#name) }, null, PAGE);
  }

  /**
   * Takes back a timeout from outside, by key or id. Once this says `revoked`, nothing of its handler counts any more, and
   * this process does not enter it; another process may be about to, in vain.
   */
  async revoke(keyOrId: string): Promise<"revoked" | "not-pending"> {
    return this.#change((record) => {
      const taken = record.pending.find(({ id, key }) => id === keyOrId || key === keyOrId);
      if (!taken) return null;
      return {
        record: { ...record, pending: record.pending.filter((one) => one !== taken) },
        ids: [taken.id],
      };
    }).then((isChanged) => (isChanged ? "revoked" : "not-pending"));
  }

  /** Completes the saga from outside, without a handler: what is pending is revoked. Answers whether it was alive. */
  end(): Promise<boolean> {
    return this.#change((record) => ({
      record: { ...record, pending: [], completedAt: this.#parts.clock.now() },
      ids: record.pending.map(({ id }) => id),
    }));
  }

  /** Changes a saga that is alive, after the steps under way in this process and guarded against those in others. */
  #change(
    change: (record: SagaRecord) => { readonly record: SagaRecord; readonly ids: readonly string[] } | null,
  ): Promise<boolean> {
    const name = sagaName(this.#name);
    return this.#chains.run(name, async () => {
      const changed = await changeRecord(this.#parts, "saga", SAGAS, name, (record, now) => {
        const next = record?.completedAt === null ? change(record) : null;
        if (!next) return null;
        const effects = next.ids.map((id) => ({ revoke: { id } }));
        return { ...writeOf(this.#plan, { ...next.record, changedAt: now }), effects };
      });
      return changed !== null;
    });
  }
}
