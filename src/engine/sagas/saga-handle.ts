import { CurfewError } from "../../core/errors.ts";
import type { SagaPlan } from "../../core/saga/saga.ts";
import { decodeRecord, type SagaRecord } from "../../core/saga/saga-record.ts";
import type { Instant } from "../../core/time.ts";
import type { TimeoutRow } from "../../core/timeout/timeout.ts";
import type { RecordRow } from "../../ports/store.ts";
import type { Chains } from "../runtime/serial-by-key.ts";
import { mailKeyOf, nameOf, recordKeyOf, type SagaName } from "./saga-addresses.ts";
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

export function viewOf<State>({ key, version, body }: RecordRow): SagaView<State> {
  const { type, id } = nameOf(key);
  const { state, startedAt, changedAt, completedAt, pending } = decodeRecord(body);
  return { type, id, state: state as State, version, startedAt, changedAt, completedAt, pending };
}

const CONFLICT_TRIES = 100;
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
    const [row] = await this.#parts.store.records.load([recordKeyOf(this.#name)]);
    return row ? viewOf(row) : null;
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
    const { store, clock } = this.#parts;
    const key = recordKeyOf(this.#name);
    return this.#chains.run(key[1], async () => {
      for (let tries = 0; tries < CONFLICT_TRIES; tries++) {
        const [row] = await store.records.load([key]);
        const record = row ? decodeRecord(row.body) : null;
        const changed = record && record.completedAt === null ? change(record) : null;
        if (!row || !changed) return false;
        const now = clock.now();
        const unit = {
          when: [{ record: key, version: row.version }],
          effects: [
            writeOf(this.#plan, key, { ...changed.record, changedAt: now }),
            ...changed.ids.map((id) => ({ revoke: { id } })),
          ],
        };
        const [answer] = await store.commit([unit], { now });
        if (answer?.ok) return true;
      }
      throw new CurfewError(
        "store_failed",
        `saga ${this.type} ${this.id} changes faster than it can be changed`,
      );
    });
  }
}
