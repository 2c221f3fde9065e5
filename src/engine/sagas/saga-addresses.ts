import { CurfewError } from "../../core/errors.ts";
import { cellOfName, withCell } from "../../core/home/cell.ts";
import type { IdSource } from "../../core/ids.ts";
import type { OutgoingMessage, TimeoutRequest } from "../../core/saga/saga-actions.ts";
import {
  decodeRecord,
  encodeRecord,
  type ReplyAddress,
  type SagaRecord,
} from "../../core/saga/saga-record.ts";
import type { SagaEvent } from "../../core/saga/step.ts";
import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import type { NewTimeout, TimeoutRow } from "../../core/timeout/timeout.ts";
import type { RecordKey } from "../../ports/store.ts";
import { recordKind } from "../commit/record-kind.ts";

/** The type and the correlation value of one saga. */
export interface SagaName {
  readonly type: string;
  readonly id: string;
}

/** Records of sagas, named by `sagaName`. */
export const SAGAS = recordKind<SagaRecord>("saga", { decode: decodeRecord, encode: encodeRecord });
/** Replies, named by the message that they answer. */
export const REPLIES = recordKind<{ readonly value: Json }>("reply");

const PREFIX = "saga:";

/** The destination of a type's timeouts and messages. */
export function destinationOf(type: string): string {
  return `${PREFIX}${type}`;
}

export function isSagaDestination(name: string): boolean {
  return name.startsWith(PREFIX);
}

export function sagaName({ type, id }: SagaName): string {
  return JSON.stringify([type, id]);
}

/** The key of a saga's record; its timeouts carry the same key. */
export function recordKeyOf(saga: SagaName): RecordKey {
  return SAGAS.key(sagaName(saga));
}

/** All record names of a type begin with this. */
export function keyPrefixOf(type: string): string {
  return `${JSON.stringify([type]).slice(0, -1)},`;
}

export function nameOf([, key]: RecordKey): SagaName {
  const [type, id] = JSON.parse(key) as [string, string];
  return { type, id };
}

/** The mailbox of a saga. Messages are timeouts that are due at once, and this key lists them in order. */
export function mailKeyOf({ type, id }: SagaName): RecordKey {
  return ["mail", JSON.stringify([type, id])];
}

/** The id of the row of a message: in the home of the saga that gets it. A sent message keeps its own id otherwise. */
export function rowIdOf(
  { id, saga, to }: { readonly id?: string; readonly saga: string; readonly to: string },
  nextId: IdSource,
): string {
  const { namePrefix } = nextId;
  if (namePrefix === undefined) return id ?? nextId();
  const cell = cellOfName(namePrefix + sagaName({ type: saga, id: to }));
  return id === undefined ? nextId(cell) : withCell(id, cell);
}

/** Fields of a stored message besides its payload. */
interface MessageHeaders {
  readonly message: string;
  /** The sender's id, if there is one. The row's own id gives the order of arrival. */
  readonly id?: string;
  readonly replyTo?: ReplyAddress;
}

/** A message as a timeout that is due now. Row ids grow, so the mailbox is in the order of arrival. */
export function messageRow(
  message: Omit<OutgoingMessage, "id"> & { readonly id?: string },
  rowId: string,
  now: Instant,
): NewTimeout {
  const { id, saga, to, name, payload, replyTo } = message;
  const headers: MessageHeaders = {
    message: name,
    ...(id !== undefined && id !== rowId && { id }),
    ...(replyTo && { replyTo }),
  };
  return {
    id: rowId,
    destination: destinationOf(saga),
    dueAt: now,
    payload,
    headers: headers as unknown as Record<string, Json>,
    saga: mailKeyOf({ type: saga, id: to }),
  };
}

export function timeoutRow(request: TimeoutRequest, saga: SagaName): NewTimeout {
  const { id, name, key, dueAt, payload, wallClock, isUndo } = request;
  return {
    id,
    destination: destinationOf(saga.type),
    dueAt,
    payload,
    headers: isUndo ? { undo: name } : { timeout: name },
    saga: recordKeyOf(saga),
    ...(key !== null && { key }),
    ...(wallClock !== null && { wallClock }),
  };
}

/** The saga and the event of a claimed row. */
export function readRow(row: TimeoutRow): { readonly saga: SagaName; readonly event: SagaEvent } {
  const headers = (row.headers ?? {}) as unknown as Partial<MessageHeaders> & {
    readonly timeout?: string;
    readonly undo?: string;
  };
  const name = headers.message ?? headers.timeout ?? headers.undo;
  if (row.saga === null || name === undefined) {
    throw new CurfewError(
      "invalid_state",
      `timeout ${row.id}: destination ${row.destination} is reserved for sagas; insert it with another destination`,
    );
  }
  const payload = row.payload === null ? null : (JSON.parse(row.payload) as Json);
  const saga = nameOf(row.saga);
  if (headers.message === undefined) {
    const kind = headers.undo === undefined ? "timeout" : "undo";
    return { saga, event: { kind, id: row.id, name, payload, sender: null } };
  }
  const id = headers.id ?? row.id;
  return { saga, event: { kind: "message", id, name, payload, sender: headers.replyTo ?? { message: id } } };
}
