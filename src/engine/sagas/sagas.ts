import { refuse, refuseUnknownKeys } from "../../core/errors.ts";
import type { NewJob } from "../../core/job/envelope.ts";
import { identityText, prepareMessage } from "../../core/saga/message.ts";
import { type AnySaga, planOf, type SagaPlan } from "../../core/saga/saga.ts";
import type { NewTimeout } from "../../core/timeout/timeout.ts";
import type { RecordKey, RecordRow } from "../../ports/store.ts";
import type { EngineContext } from "../context.ts";
import type { Destination } from "../dispatch/destination.ts";
import { Batcher } from "../runtime/batcher.ts";
import { Chains } from "../runtime/serial-by-key.ts";
import { MessageHandle } from "./message-handle.ts";
import { openOutbox } from "./outbox.ts";
import { keyPrefixOf, messageRow, SAGAS } from "./saga-addresses.ts";
import { SagaHandle, type SagaView, viewOf } from "./saga-handle.ts";
import { checkSagas, SagaDestination } from "./saga-host.ts";
import type { RunnerParts } from "./saga-runner.ts";

export interface MessageOptions {
  /** The sender's own id for the message: sent again under it, it is handled once. */
  readonly id?: string;
  /** The caller's own transaction on the same database: the message exists if and only if that transaction commits. */
  readonly tx?: unknown;
}

/** Sagas that are handled in this process until it is closed. */
export interface SagaHost extends AsyncDisposable {
  close(): Promise<void>;
}

/** What takes in destinations and says how to take one back, resolving when nothing of it is under way any more. */
type Serve = (name: string, destination: Destination) => () => Promise<void>;

/** All that an engine does with sagas. */
export class Sagas {
  readonly #parts: RunnerParts;
  readonly #chains = new Chains();
  readonly #outbox: Batcher<NewTimeout, undefined>;

  constructor(parts: EngineContext, noticeJobs: (jobs: readonly NewJob[]) => void) {
    const { store, waiters } = parts;
    const reads = new Batcher<RecordKey, RecordRow | null>({ call: (keys) => store.records.load(keys) });
    this.#parts = {
      ...parts,
      loadRecord: (key) => reads.add(key),
      noticeJobs,
      hintReply: (message) => waiters.hint(message),
    };
    this.#outbox = openOutbox(parts);
  }

  host(sagas: readonly AnySaga[], serve: Serve): SagaHost {
    const plans = checkSagas(sagas);
    const stops = plans.map((plan) => {
      const destination = new SagaDestination(this.#parts, plan, this.#chains);
      return serve(destination.name, destination);
    });
    let closing: Promise<void> | undefined;
    const close = () => {
      closing ??= Promise.all(stops.map((stop) => stop())).then(() => {});
      return closing;
    };
    return { close, [Symbol.asyncDispose]: close };
  }

  async send(
    saga: unknown,
    name: string,
    payload: unknown,
    options: MessageOptions = {},
  ): Promise<MessageHandle> {
    const plan = planOf(saga);
    refuseUnknownKeys(options, "options", ["id", "tx"]);
    const given = options.id === undefined ? undefined : checkMessageId(options.id);
    const { clock, nextId, documentLimit, store } = this.#parts;
    const prepared = await prepareMessage(plan, name, payload, documentLimit);
    const rowId = nextId();
    const message = { ...prepared, saga: plan.type, name, replyTo: null, ...(given && { id: given }) };
    const now = clock.now();
    const row = messageRow(message, rowId, now);
    if (options.tx === undefined) await this.#outbox.add(row);
    else {
      this.#checkTransactions(options.tx);
      await store.timeouts.insert([row], { now, tx: options.tx });
    }
    return new MessageHandle(this.#parts, given ?? rowId);
  }

  #checkTransactions(tx: unknown): void {
    const { name, tx: hasTransactions } = this.#parts.store.capabilities;
    if (hasTransactions) return;
    const fix = `the ${name} store has no transactions to join: leave it out`;
    throw refuse("invalid_option", "options.tx", typeof tx, fix);
  }

  handle<State>(saga: unknown, id: string | number | bigint): SagaHandle<State> {
    const plan: SagaPlan = planOf(saga);
    return new SagaHandle(this.#parts, plan, identityText(id, "id"), this.#chains);
  }

  /** Sagas of one type in the order of their ids, after the id that ended the page before. */
  async list<State>(
    saga: unknown,
    page: { readonly after?: string; readonly limit?: number },
  ): Promise<SagaView<State>[]> {
    refuseUnknownKeys(page, "page", ["after", "limit"]);
    const { type } = planOf(saga);
    const { limit = 100 } = page;
    if (!Number.isInteger(limit) || limit < 1 || limit > 1_000) {
      throw refuse("invalid_limit", "page.limit", limit, "use a whole number from 1 to 1000");
    }
    const prefix = keyPrefixOf(type);
    const after = page.after === undefined ? prefix : JSON.stringify([type, page.after]);
    const found = await SAGAS.list(this.#parts.store, after, limit);
    return found.filter(({ name }) => name.startsWith(prefix)).map((stored) => viewOf<State>(stored));
  }

  flushed(): Promise<void> {
    return this.#outbox.idle();
  }
}

function checkMessageId(id: unknown): string {
  if (typeof id === "string" && id !== "" && id.length <= 255 && id.isWellFormed() && !id.includes("\0"))
    return id;
  throw refuse("invalid_option", "options.id", id, "use a text of 1 to 255 characters, or leave it out");
}
