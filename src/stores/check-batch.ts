import { refuse } from "../core/errors.ts";
import { checkImage } from "../core/job/decide/check-image.ts";
import type { NewJob } from "../core/job/enqueue/envelope.ts";
import { checkInstant, type Instant } from "../core/time.ts";
import type { LookRequest } from "../ports/look.ts";
import { BATCH_LIMIT, NAME_LIMIT, type RecordKey, type Unit } from "../ports/store.ts";
import { checkEffectInstants, checkJobInstants } from "./check-instants.ts";

/** Refuses a call with more than `BATCH_LIMIT` items. */
export function checkBatch(items: readonly unknown[], field: string): void {
  if (items.length > BATCH_LIMIT) {
    throw refuse("invalid_limit", field, `${items.length} items`, `pass at most ${BATCH_LIMIT} in one call`);
  }
}

export function checkLook({ queues, destinations, records }: LookRequest): void {
  checkBatch(queues, "queues");
  checkBatch(destinations, "destinations");
  checkBatch(records, "records");
}

export function checkLimit(limit: number, most = Number.MAX_SAFE_INTEGER): void {
  if (!Number.isInteger(limit) || limit < 1 || limit > most) {
    throw refuse("invalid_limit", "limit", limit, `use a whole number from 1 to ${most}`);
  }
}

/** Refuses jobs with names that are too long for an index, or with fractions of instants, before the call writes anything. */
export function checkJobs(jobs: readonly NewJob[], now: Instant): void {
  checkInstant(now, "now");
  checkBatch(jobs, "jobs");
  let last: NewJob | undefined;
  for (const job of jobs) {
    checkJob(job, last);
    last = job;
  }
}

function checkJob(job: NewJob, last?: NewJob): void {
  const { uniqueKey, limitKey, fairKey, workflow } = job;
  checkJobInstants(job, last);
  if (uniqueKey !== undefined) checkName(uniqueKey, "uniqueKey");
  if (limitKey !== undefined) checkName(limitKey, "limitKey");
  if (fairKey !== undefined) checkName(fairKey, "fairKey");
  if (workflow !== undefined) checkName(workflow, "workflow");
}

export function checkUnits(units: readonly Unit[], now: Instant): void {
  checkInstant(now, "now");
  checkBatch(units, "units");
  for (const { job, when, effects } of units) {
    if (job?.image) checkImage(job.image);
    if (when) for (const guard of when) if ("record" in guard) checkKey(guard.record);
    if (!effects) continue;
    for (const effect of effects) {
      checkEffectInstants(effect);
      if ("enqueue" in effect) checkJob(effect.enqueue);
      else if ("put" in effect) checkKey(effect.put);
    }
  }
}

function checkKey([kind, key]: RecordKey): void {
  checkName(kind, "kind of a record");
  checkName(key, "key of a record");
}

function checkName(name: string, field: string): void {
  if (name.length <= NAME_LIMIT) return;
  const fix = `use at most ${NAME_LIMIT} characters: hash a longer text`;
  throw refuse("too_large", field, `${name.slice(0, 40)}… (${name.length} characters)`, fix);
}
