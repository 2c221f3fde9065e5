import { checkCount, refuse, refuseUnknownKeys } from "../../core/errors.ts";
import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import { identityText, prepareMessage } from "../../core/saga/message.ts";
import { type AnySaga, planOf, type SagaPlan } from "../../core/saga/saga.ts";
import type { NewTimeout } from "../../core/timeout/timeout.ts";
import type { Transaction } from "../../core/transaction.ts";
import { BATCH_LIMIT, type RecordKey, type RecordRow } from "../../ports/store.ts";
import { checkTx } from "../commit/check-tx.ts";
import type { EngineContext } from "../context.ts";
import type { Destination } from "../dispatch/destination.ts";
import { Batcher } from "../runtime/batcher.ts";
import { Chains } from "../runtime/serial-by-key.ts";
import { openMessageBatches } from "./message-batches.ts";
import { MessageHandle } from "./message-handle.ts";
import { keyPrefixOf, messageRow, rowIdOf, SAGAS } from "./saga-addresses.ts";
import { SagaHandle, type SagaView, viewOf } from "./saga-handle.ts";
import { checkSagas, SagaDestination } from "./saga-host.ts";
import type { StepContext } from "./saga-runner.ts";

export interface MessageOptions {
  /** The sender's id for the message: a message that is sent again with it is handled once. */
  readonly id?: string;
  /** Your open transaction on the same database. The message exists if and only if it commits. */
  readonly tx?: Transaction;
}

/** A message that its sender has checked and correlated; its payload is JSON text. */
export interface PostedMessage {
  readonly saga: string;
  /** The correlation value of its saga. */
  readonly to: string;
  readonly name: string;
  readonly payload: string;
  /** The sender's id for the message. */
  readonly id?: string;
}

/** Sagas that this process handles until `close`. */
export interface SagaHost extends AsyncDisposable {
  close(): Promise<void>;
}

/** Serves a destination. The returned function stops it and resolves when no delivery runs. */
type Serve = (name: string, destination: Destination) => () => Promise<void>;

/** The sagas of an engine. */
export class Sagas {
  readonly #context: StepContext;
  readonly #chains = new Chains();
  readonly #messages: Batcher<NewTimeout, undefined>;

  constructor(context: EngineContext, noticeJobs: (jobs: readonly NewJob[]) => void) {
    const { store, waiters } = context;
    const reads = new Batcher<RecordKey, RecordRow | null>({ call: (keys) => store.records.load(keys) });
    this.#context = {
      ...context,
      loadRecord: (key) => reads.add(key),
      noticeJobs,
      hintReply: (message) => waiters.hint(message),
    };
    this.#messages = openMessageBatches(context);
  }

  host(sagas: readonly AnySaga[], serve: Serve): SagaHost {
    const plans = checkSagas(sagas);
    const stops = plans.map((plan) => {
      const destination = new SagaDestination(this.#context, plan, this.#chains);
      return serve(destination.name, destination);
    });
    let closing: Promise<void> | undefined;
    const close = () => {
      closing ??= Promise.all(stops.map((stop) => stop())).then(() => {});
      return closing;
    };
    return { close, [Symbol.asyncDispose]: close };
  }

  get documentLimit(): number {
    return this.#context.documentLimit;
  }

  async send(
    saga: unknown,
    name: string,
    payload: unknown,
    options: MessageOptions = {},
  ): Promise<MessageHandle> {
    const plan = planOf(saga);
    refuseUnknownKeys(options, "options", ["id", "tx"]);
    const { id, tx } = options;
    if (id !== undefined) checkMessageId(id);
    const prepared = await prepareMessage(plan, name, payload, this.#context.documentLimit);
    return this.post({ ...prepared, saga: plan.type, name, ...(id !== undefined && { id }) }, tx);
  }

  /** Makes a checked message durable, for a process without the saga's definition too. */
  async post(message: PostedMessage, tx?: unknown): Promise<MessageHandle> {
    const { clock, nextId, store } = this.#context;
    const { id } = message;
    if (id !== undefined) checkMessageId(id);
    const rowId = rowIdOf({ saga: message.saga, to: message.to }, nextId);
    const now = clock.now();
    const row = messageRow({ ...message, replyTo: null }, rowId, now);
    if (tx === undefined) await this.#messages.add(row);
    else {
      checkTx(store, tx);
      await store.timeouts.insert([row], { now, tx });
    }
    return this.message(id ?? rowId);
  }

  message(id: string): MessageHandle {
    return new MessageHandle(this.#context, id);
  }

  handle<State>(saga: unknown, id: string | number | bigint): SagaHandle<State> {
    return this.handleOf(planOf(saga), identityText(id, "id"));
  }

  /** A handle for a process without the definition. `retention` counts if the handle ends the saga. */
  handleOf<State>(plan: Pick<SagaPlan, "type" | "retention">, id: string): SagaHandle<State> {
    return new SagaHandle(this.#context, plan, id, this.#chains);
  }

  /** Sagas of one type by id; `after` is the last id of the page before. */
  async list<State>(
    saga: unknown,
    page: { readonly after?: string; readonly limit?: number },
  ): Promise<SagaView<State>[]> {
    refuseUnknownKeys(page, "page", ["after", "limit"]);
    const { type } = planOf(saga);
    const { limit = 100 } = page;
    checkCount(limit, "page.limit", BATCH_LIMIT);
    const prefix = keyPrefixOf(type);
    const after = page.after === undefined ? prefix : JSON.stringify([type, page.after]);
    const stored = await SAGAS.list(this.#context.store, after, limit);
    return stored.filter(({ name }) => name.startsWith(prefix)).map((record) => viewOf<State>(record));
  }

  flushed(): Promise<void> {
    return this.#messages.idle();
  }
}

function checkMessageId(id: unknown): string {
  if (typeof id === "string" && id !== "" && id.length <= 255 && id.isWellFormed() && !id.includes("\0"))
    return id;
  throw refuse("invalid_option", "options.id", id, "use a text of 1 to 255 characters, or leave it out");
}
