import { checkCount, refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { identityText } from "../../core/saga/message.ts";
import { SAGA_RETENTION } from "../../core/saga/saga-definition.ts";
import { type Json, toJsonText } from "../../core/schema.ts";
import { type Duration, parseDuration } from "../../core/time.ts";
import { checkText, type SagaKey, type TimeoutRow } from "../../core/timeout/timeout.ts";
import type { ListOrder, Store } from "../../ports/store.ts";
import { checkOrder } from "../commit/check-order.ts";
import { type Timeout, timeoutOf } from "../dispatch/timeout-view.ts";
import type { MessageHandle } from "./message-handle.ts";
import { keyPrefixOf, mailKeyOf, nameOf, recordKeyOf, SAGAS, sagaName } from "./saga-addresses.ts";
import { type SagaHandle, type SagaView, viewOf } from "./saga-handle.ts";
import type { PostedMessage, Sagas } from "./sagas.ts";

export interface SagaListOptions {
  /** Only sagas of this type. Default: all types, one after the other. */
  readonly type?: string;
  /** The cursor of the page before. */
  readonly after?: string | null;
  /** From 1 to 1,000; default 100. */
  readonly limit?: number;
  /** By type and id: from the first, or from the last with `desc`. Default `asc`. */
  readonly order?: ListOrder;
}

/** A page of sagas. `cursor` is the `after` of the next page; null on the last one. */
export interface SagaPage {
  readonly sagas: readonly SagaView[];
  readonly cursor: string | null;
}

/** One saga with its timeouts and messages. */
export interface SagaDetail extends SagaView {
  /** The version of the definition that wrote the state. */
  readonly schema: number;
  /** Ids of the last 20 handled messages, newest last. The steps themselves are not stored. */
  readonly handled: readonly string[];
  /** Its pending and dead timeouts: the first 1,000, or fewer if they have more than 6 MB together. */
  readonly timeouts: readonly Timeout[];
  /** Its waiting and dead messages in the order of arrival, with the same bounds. */
  readonly messages: readonly Timeout[];
}

const MOST = 1_000;
/** Characters of payloads after which no more timeouts or messages of a saga are read. */
const MOST_SIZE = 6_000_000;
/** Rows of the first read, and the most of one: each may have 1 MB. */
const FIRST_STEP = 8;
const MOST_STEP = 32;
/** Characters of a row besides its payload, roughly. */
const ROW_SIZE = 200;

/** Reads and operates sagas. It needs no definition, so any process can use it for all sagas. */
export class SagaRecords {
  readonly #store: Store;
  readonly #sagas: Sagas;

  constructor(store: Store, sagas: Sagas) {
    this.#store = store;
    this.#sagas = sagas;
  }

  /** Sends a message whose payload the sender has checked. */
  async send(message: Omit<PostedMessage, "payload"> & { readonly payload: Json }): Promise<MessageHandle> {
    const payload = toJsonText(message.payload, "payload", this.#sagas.documentLimit);
    checkText(message.saga, "saga");
    checkText(message.name, "name");
    return this.#sagas.post({ ...message, payload, to: identityText(message.to, "to") });
  }

  /** A sent message by its id. */
  message(id: string): MessageHandle {
    return this.#sagas.message(checkText(id, "id"));
  }

  /** A handle on any saga. `retention` says how long it can be read if this handle ends it; default a day. */
  handle(type: string, id: string, options: { readonly retention?: Duration } = {}): SagaHandle {
    refuseUnknownKeys(options, "options", ["retention"]);
    const { retention = { milliseconds: SAGA_RETENTION } } = options;
    const plan = {
      type: checkText(type, "type"),
      retention: parseDuration(retention, "options.retention", { zero: true }),
    };
    return this.#sagas.handleOf(plan, identityText(id, "id"));
  }

  /** Live and completed sagas, by type and id. */
  async list(options: SagaListOptions = {}): Promise<SagaPage> {
    refuseUnknownKeys(options, "options", ["type", "after", "limit", "order"]);
    const { type, after = null, limit = 100, order = "asc" } = options;
    checkCount(limit, "options.limit", MOST);
    checkOrder(order, "options.order");
    const prefix = type === undefined ? "" : keyPrefixOf(checkText(type, "options.type"));
    if (after !== null && !(isKey(after) && after.startsWith(prefix)))
      throw refuse("invalid_option", "options.after", after, "use the cursor of the page before");
    // A type's names begin with its prefix, which ends with a comma. The next character sorts after all of them.
    const first = order === "asc" || prefix === "" ? prefix : `${prefix.slice(0, -1)}-`;
    const stored = await SAGAS.list(this.#store, after ?? (first || null), limit + 1, order);
    const wanted = stored.filter(({ name }) => name.startsWith(prefix));
    const page = wanted.slice(0, limit);
    const cursor = wanted.length > limit ? (page.at(-1)?.name ?? null) : null;
    return { sagas: page.map((one) => viewOf(one)), cursor };
  }

  async get(type: string, id: string): Promise<SagaDetail | null> {
    const name = { type: checkText(type, "type"), id: checkText(id, "id") };
    const stored = await SAGAS.load(this.#store, sagaName(name));
    if (!stored) return null;
    const timeouts = await firstOf(this.#store, recordKeyOf(name));
    const messages = await firstOf(this.#store, mailKeyOf(name));
    const { schema, handled } = stored.body;
    return {
      ...viewOf(stored),
      schema,
      handled,
      timeouts: timeouts.map(timeoutOf),
      messages: messages.map(timeoutOf),
    };
  }
}

/** The first timeouts or messages of a saga, read in steps that grow while they are small. */
async function firstOf({ timeouts }: Pick<Store, "timeouts">, saga: SagaKey): Promise<TimeoutRow[]> {
  const rows: TimeoutRow[] = [];
  let [size, step] = [0, FIRST_STEP];
  while (rows.length < MOST && size < MOST_SIZE) {
    const asked = Math.min(MOST - rows.length, step);
    const read = await timeouts.list({ saga }, rows.at(-1)?.id ?? null, asked);
    for (const row of read) size += ROW_SIZE + (row.payload?.length ?? 0);
    rows.push(...read);
    if (read.length < asked) break;
    step = Math.min(4 * step, MOST_STEP, Math.ceil(((MOST_SIZE - size) * rows.length) / size));
  }
  return rows;
}

/** Whether a cursor is the name of a saga's record. */
function isKey(after: unknown): boolean {
  if (typeof after !== "string" || !after.startsWith('["')) return false;
  try {
    const { type, id } = nameOf(["saga", after]);
    return typeof type === "string" && typeof id === "string";
  } catch {
    return false;
  }
}
