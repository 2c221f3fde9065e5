import { refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { UUID } from "../../core/ids.ts";
import { type Json, toJsonText } from "../../core/schema.ts";
import { type Duration, type Instant, parseDuration } from "../../core/time.ts";
import type { WorkflowRecord } from "../../core/workflow/workflow-record.ts";
import { parentOf } from "../attempt/attempt-scope.ts";
import type { AttemptContext } from "../attempt/processor.ts";

export interface WorkflowOptions {
  /** A UUID of the caller's own; starting it again gives the old workflow as a duplicate. */
  readonly id?: string;
  /** For people: what it is called in lists and events. */
  readonly name?: string;
  /** The limit for the whole workflow, from now on: no step gets more time than is left of it. */
  readonly timeout?: Duration;
  /** How long it can be looked at after its end; its jobs have retentions of their own. */
  readonly retention?: Duration;
  readonly meta?: { readonly [key: string]: Json };
  /**
   * The context of the handler that starts it: the workflow inherits what is left of that job's total budget, as jobs do
   * that a handler enqueues (SEMANTICS 4.7).
   */
  readonly parent?: Pick<AttemptContext, "id">;
  /** The caller's own transaction: the workflow exists if and only if that transaction commits. */
  readonly tx?: unknown;
}

export interface ParsedOptions {
  readonly id: string | undefined;
  readonly name: string | null;
  readonly timeout: number | null;
  readonly retention: WorkflowRecord["retention"];
  readonly meta: WorkflowRecord["meta"];
  /** The end of the job that starts it; null if it has none, or nobody's handler starts it. */
  readonly inheritedAt: Instant | null;
  readonly tx: unknown;
}

const DAY = 86_400_000;
const NAME_LIMIT = 255;

export function parseOptions(options: WorkflowOptions): ParsedOptions {
  refuseUnknownKeys(options, "options", ["id", "name", "timeout", "retention", "meta", "parent", "tx"]);
  const { id, name, timeout, retention, meta, parent, tx } = options;
  if (id !== undefined && (typeof id !== "string" || !UUID.test(id)))
    throw refuse("invalid_option", "options.id", id, "use a lower-case UUID, or leave it out");
  if (name !== undefined && (typeof name !== "string" || name === "" || name.length > NAME_LIMIT))
    throw refuse("invalid_option", "options.name", name, `use a text of 1 to ${NAME_LIMIT} characters`);
  const kept =
    retention === undefined ? undefined : parseDuration(retention, "options.retention", { zero: true });
  return {
    id,
    name: name ?? null,
    timeout: timeout === undefined ? null : parseDuration(timeout, "options.timeout"),
    retention: { completed: kept ?? DAY, other: kept ?? 14 * DAY },
    meta: meta === undefined ? null : copyMeta(meta),
    inheritedAt: parentOf(parent, "options.parent")?.totalAt ?? null,
    tx,
  };
}

function copyMeta(meta: NonNullable<WorkflowOptions["meta"]>): { readonly [key: string]: Json } {
  if (typeof meta !== "object" || meta === null || Array.isArray(meta))
    throw refuse("invalid_option", "options.meta", meta, "write an object");
  return JSON.parse(toJsonText(meta, "options.meta"));
}
