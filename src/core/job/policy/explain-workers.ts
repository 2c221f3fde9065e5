import { ruleKey } from "../../stats/adaptive-limit.ts";
import { formatDuration } from "../../time.ts";
import { takesQueue, type WorkerReport } from "../../worker/worker-report.ts";
import type { Backoff, JobRow, PolicySettings } from "../job.ts";
import type { AnyDefinition } from "../job-definition.ts";
import { isTerminal } from "../lifecycle.ts";
import { ruleOf } from "./policy.ts";
import { describeBackoff } from "./retry.ts";

/**
 * These fields are fixed when a job is enqueued, by its producer. The others are fixed at the first start, by the
 * worker.
 */
const PRODUCERS: ReadonlySet<string> = new Set(["wait", "total", "queue"]);

/** Differences between a job and the living workers: none takes its queue, or their definitions differ. */
export function workerWarnings(
  row: JobRow,
  definition: Pick<AnyDefinition, "queue" | "settings"> | undefined,
  live: readonly WorkerReport[],
): string[] {
  if (isTerminal(row.state)) return [];
  const warnings: string[] = [];
  if (!live.some((worker) => takesQueue(worker, row.queue)))
    warnings.push(`no live worker takes queue "${row.queue}": the job waits until one does`);
  const seen = new Set<string>();
  for (const { id, processors } of live) {
    const processor = processors?.find(({ type }) => type === row.type);
    if (!processor?.settings) continue;
    const theirs = saidBy(processor.settings, processor.queue);
    for (const [field, ours] of definition
      ? saidBy(definition.settings, definition.queue)
      : saidAtEnqueue(row)) {
      const other = theirs.get(field) ?? "nothing";
      const holds = PRODUCERS.has(field) ? "the producer's holds" : "the worker's holds";
      const text = `${field}: the producer's definition says ${ours}, that of worker ${id} says ${other}; ${holds}`;
      // Many workers run the same code, so each difference is named once.
      const key = `${field} ${ours} ${other}`;
      if (ours === other || seen.has(key)) continue;
      seen.add(key);
      warnings.push(text);
    }
  }
  return warnings;
}

/**
 * The settings of a definition by field, as a person would write them. A field that only one of two definitions sets
 * differs.
 */
function saidBy({ timeouts = {}, retry = {} }: PolicySettings, queue: string): Map<string, string> {
  const said = new Map<string, string>([["queue", queue]]);
  for (const field of ["wait", "attempt", "total", "grace", "heartbeat", "mode"] as const)
    said.set(field, timeouts[field] === undefined ? "nothing" : shown(field, timeouts[field]));
  const rule = ruleOf({ timeouts });
  if (rule) said.set("attempt", `adaptive ${ruleKey(rule)}`);
  for (const field of ["attempts", "backoff", "except", "retryFit", "onStall", "onExhausted"] as const)
    said.set(field, retry[field] === undefined ? "nothing" : shown(field, retry[field]));
  return said;
}

/** What the row has of its producer's definition: the fixed budgets. */
function saidAtEnqueue({ options }: JobRow): Map<string, string> {
  const said = new Map<string, string>();
  if (options?.waitFrom === "definition") said.set("wait", shown("wait", options.wait ?? null));
  if (options?.totalFrom === "definition") said.set("total", shown("total", options.total ?? null));
  return said;
}

function shown(field: string, value: unknown): string {
  if (value === null) return field === "grace" ? "unbounded" : "none";
  if (field === "backoff") return describeBackoff(value as Backoff);
  if (field === "attempts" || typeof value === "string") return String(value);
  return typeof value === "number" ? formatDuration(value) : JSON.stringify(value);
}
