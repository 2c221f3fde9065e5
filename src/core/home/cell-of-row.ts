import { TENANT_MARK, tenantPrefix } from "../tenant/tenant-name.ts";
import type { NewTimeout, SagaKey } from "../timeout/timeout.ts";
import { type Cell, cellOfId, cellOfName, SETTINGS_CELL } from "./cell.ts";

type RecordKey = readonly [kind: string, key: string];

/** Records of these kinds are named by an id that carries its cell. */
const BY_ID: ReadonlySet<string> = new Set([
  "workflow",
  "workflow.plan",
  "workflow.result",
  "reply",
  "outbox",
  "delivered",
]);
/** Records of these kinds are spread by their names. All others are settings. */
const BY_NAME: ReadonlySet<string> = new Set(["saga", "mail", "unique", "worker", "cron"]);
/** Settings that claims and admissions read. Every home has a copy of them. */
const COPIED: ReadonlySet<string> = new Set(["pause", "limit"]);
const START_KIND = "start";

/** Whether every home has a copy of this record. The one in the cell of settings counts. */
export function isCopied([kind]: RecordKey): boolean {
  return COPIED.has(kind);
}

/** Whether all records of a kind are in the cell of settings. */
export function isSettingKind(kind: string): boolean {
  const plain = plainKind(kind);
  return !BY_ID.has(plain) && !BY_NAME.has(plain) && plain !== START_KIND;
}

export function cellOfRecord([kind, key]: RecordKey): Cell {
  const plain = plainKind(kind);
  if (BY_ID.has(plain)) return cellOfId(key);
  if (BY_NAME.has(plain)) return cellOfName(plain === kind ? key : prefixOf(kind) + key);
  return plain === START_KIND ? cellOfName(limitOfStart(key)) : SETTINGS_CELL;
}

/** The cell of a saga, of its mailbox and of its timeouts. */
export function cellOfSaga(saga: SagaKey): Cell {
  const [kind, key] = saga;
  return cellOfName(plainKind(kind) === kind ? key : prefixOf(kind) + key);
}

/** The cell in which a timeout has to be: that of its saga, or that of its key; undefined if any will do. */
export function cellOfTimeout({
  saga,
  key,
  destination,
}: Pick<NewTimeout, "saga" | "key" | "destination">): Cell | undefined {
  if (saga) return cellOfSaga(saga);
  return key === undefined ? undefined : cellOfTimeoutKey(destination, key);
}

export function cellOfTimeoutKey(destination: string, key: string): Cell {
  return cellOfName(`${destination} ${key}`);
}

/** The kind without the name of its tenant. */
function plainKind(kind: string): string {
  const mark = kind.indexOf(TENANT_MARK);
  return mark < 0 ? kind : kind.slice(0, mark);
}

function prefixOf(kind: string): string {
  return tenantPrefix(kind.slice(kind.indexOf(TENANT_MARK) + 1));
}

/** The limit key in the key of a remembered start: its length, a space, the limit key. */
function limitOfStart(key: string): string {
  const space = key.indexOf(" ");
  return key.slice(space + 1, space + 1 + Number(key.slice(0, space)));
}
