import { refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { UUID } from "../../core/ids.ts";
import { copyMeta } from "../../core/job/enqueue/job-meta.ts";
import type { Json } from "../../core/schema.ts";
import { type Duration, type Instant, parseDuration } from "../../core/time.ts";
import type { Transaction } from "../../core/transaction.ts";
import type { WorkflowRecord } from "../../core/workflow/workflow-record.ts";
import { parentOf } from "../attempt/attempt-scope.ts";
import type { AttemptContext } from "../attempt/processor.ts";

export interface WorkflowOptions {
  /** A UUID from the caller. Starting the same id again returns the existing workflow as a duplicate. */
  readonly id?: string;
  /** The name that people see in lists and events. */
  readonly name?: string;
  /** The limit for the whole workflow, from its start: it cuts the time of every step. */
  readonly timeout?: Duration;
  /** How long the workflow can be read after its end. Its jobs have their own retentions. */
  readonly retention?: Duration;
  readonly meta?: { readonly [key: string]: Json };
  /**
   * The context of the handler that starts it. The workflow inherits the rest of that job's total budget, like jobs
   * that a handler enqueues (SEMANTICS 4.7).
   */
  readonly parent?: Pick<AttemptContext, "id">;
  /** Your open transaction: the workflow exists if and only if it commits. */
  readonly tx?: Transaction;
}

export interface ParsedOptions {
  readonly id: string | undefined;
  readonly name: string | null;
  readonly timeout: number | null;
  readonly retention: WorkflowRecord["retention"];
  readonly meta: WorkflowRecord["meta"];
  /** The `total` deadline of the job that starts it; null if there is none. */
  readonly inheritedAt: Instant | null;
  readonly tx: unknown;
}

const DAY = 86_400_000;
const NAME_LIMIT = 255;

export function parseOptions(options: WorkflowOptions): ParsedOptions {
  refuseUnknownKeys(options, "options", ["id", "name", "timeout", "retention", "meta", "parent", "tx"]);
  const { id, name, timeout, meta, parent, tx } = options;
  if (id !== undefined && (typeof id !== "string" || !UUID.test(id)))
    throw refuse("invalid_option", "options.id", id, "use a lower-case UUID, or leave it out");
  if (name !== undefined && (typeof name !== "string" || name === "" || name.length > NAME_LIMIT))
    throw refuse("invalid_option", "options.name", name, `use a text of 1 to ${NAME_LIMIT} characters`);
  const retention =
    options.retention === undefined
      ? undefined
      : parseDuration(options.retention, "options.retention", { zero: true });
  return {
    id,
    name: name ?? null,
    timeout: timeout === undefined ? null : parseDuration(timeout, "options.timeout"),
    retention: { completed: retention ?? DAY, other: retention ?? 14 * DAY },
    meta: meta === undefined ? null : copyMeta(meta),
    inheritedAt: parentOf(parent, "options.parent")?.totalAt ?? null,
    tx,
  };
}
