import { z } from "zod";
import type { JobQuery } from "../../engine/find/job-query.ts";
import type { BulkOptions, BulkResult } from "../../engine/operations/bulk.ts";
import type { DeadLetterQuery } from "../../engine/operations/dead-letters.ts";
import type { RetryByHandOptions } from "../../engine/operations/retry-by-hand.ts";
import type { BulkStep } from "../../ojs/call-names.ts";
import { bounds, type CallDeps, call, jobQuery, options } from "./call.ts";

type Sent<More> = Omit<BulkOptions, "signal" | "onProgress" | "by"> & Partial<BulkStep> & More;
type Query = JobQuery & DeadLetterQuery;

/** One step of an action. A job that comes back during the action, such as a retried one, is left out of later steps. */
async function step<More extends object>(
  host: CallDeps,
  query: Query,
  sent: Sent<More>,
  act: (query: Query, options: BulkOptions & More) => Promise<BulkResult>,
): Promise<BulkResult & BulkStep> {
  const { startedAt = host.engine.now(), ...rest } = sent;
  const before = { epochMilliseconds: startedAt + 1 };
  const isLater = sent.startedAt !== undefined;
  const bounded = {
    ...query,
    ...(isLater && query.createdBefore === undefined && { createdBefore: before }),
  };
  const how = { ...rest, ...bounds(host), by: host.by } as unknown as BulkOptions & More;
  const result = await act(bounded, how);
  // The store's message may name hosts and tables, so only the log has it.
  return { ...result, errors: result.errors.map(() => "The store refused a batch"), startedAt };
}

const query = jobQuery<Query>();
const plain = options<Sent<object>>().optional();
const retried = options<Sent<RetryByHandOptions>>().optional();

/** Dead letters are in the order of their ends, so one that fails again would come again. */
function endedBefore(said: Query, startedAt: number | undefined): Query {
  if (startedAt === undefined || said.finishedBefore !== undefined) return said;
  return { ...said, finishedBefore: { epochMilliseconds: startedAt + 1 } };
}

export const bulkCalls = {
  "bulk.count": call("Count jobs", z.tuple([query]), ({ engine }, said) => engine.bulk.count(said)),
  "bulk.cancel": call("Cancel jobs", z.tuple([query, plain]), (host, said, sent = {}) =>
    step(host, said, sent, (all, how) => host.engine.bulk.cancel(all, how)),
  ),
  "bulk.retry": call("Run discarded jobs again", z.tuple([query, retried]), (host, said, sent = {}) =>
    step(host, endedBefore(said, said.deadLetter ? sent.startedAt : undefined), sent, (all, how) =>
      host.engine.bulk.retry(all, how),
    ),
  ),
  "bulk.delete": call("Delete ended jobs", z.tuple([query, plain]), (host, said, sent = {}) =>
    step(host, said, sent, (all, how) => host.engine.bulk.delete(all, how)),
  ),
  "bulk.prioritise": call(
    "Change the priority of jobs",
    z.tuple([query, options<Sent<{ readonly priority: number }>>()]),
    (host, said, sent) => step(host, said, sent, (all, how) => host.engine.bulk.prioritise(all, how)),
  ),
  "deadLetters.retryAll": call("Run dead letters again", z.tuple([query, retried]), (host, said, sent = {}) =>
    step(host, endedBefore(said, sent.startedAt), sent, (all, how) =>
      host.engine.deadLetters.retryAll(all, how),
    ),
  ),
  "deadLetters.deleteAll": call("Delete dead letters", z.tuple([query, plain]), (host, said, sent = {}) =>
    step(host, said, sent, (all, how) => host.engine.deadLetters.deleteAll(all, how)),
  ),
};
