import { NO_FAIR_KEY } from "../../core/fair/fair-options.ts";
import { claimEndsAt, claimWakeAt } from "../../core/job/decide/store-formulas.ts";
import { type JobRow, priorityOf } from "../../core/job/job.ts";
import type { ClaimRequest } from "../../ports/store.ts";
import { optionsParser, policyParser, type SqlRow } from "./row-codec.ts";

type Maybe<Value> = Value | null;

/** What a job has only after an attempt, or with a limit, a fair key or a workflow. */
type Rest = readonly [
  workflow: Maybe<string>,
  limitKey: Maybe<string>,
  fairKey: Maybe<string>,
  policy: Maybe<string>,
  errors: Maybe<string>,
  progress: Maybe<string>,
  checkpoint: Maybe<string>,
  result: Maybe<string>,
  startedAt: Maybe<number>,
  softAt: Maybe<number>,
  hardAt: Maybe<number>,
  heartbeat: Maybe<number>,
  needs: number,
  attempt: number,
  returns: number,
  expiredClaims: number,
];

const NO_REST: Rest = [null, null, null, null, null, null, null, null, null, null, null, null, 0, 0, 0, 0];

/**
 * What a claim returns of each row, for `decodeClaimed`. Each value costs time on both sides, so what most jobs do not have
 * is one value, made by `array`.
 */
export function claimedValues(names: ValueNames): string {
  return valuesWith(names, "fair_key, ");
}

/** What a claim from a fair queue returns, for `decodeFair`. Most jobs there have a fair key, and nothing else of the rest. */
export function fairValues(names: ValueNames): string {
  return `${valuesWith(names, "")}, fair_key`;
}

type ValueNames = Readonly<Record<"fence" | "rev" | "array", string>>;

function valuesWith({ fence, rev, array }: ValueNames, fairKey: string): string {
  return `
  id, type, ${fence}, ${rev}, created_at, payload, options, rank, wait_at, total_at,
  case when coalesce(workflow, limit_key, ${fairKey}policy, errors, progress, checkpoint, result) is not null
         or coalesce(started_at, soft_at, hard_at, heartbeat) is not null
         or needs + attempt + returns + expired_claims > 0
       then ${array}(workflow, limit_key, fair_key, policy, errors, progress, checkpoint, result,
                     started_at, soft_at, hard_at, heartbeat, needs, attempt, returns, expired_claims) end`;
}

/** How many values that are. */
export const CLAIMED_LENGTH = 11;
export const FAIR_LENGTH = CLAIMED_LENGTH + 1;

/** The fair key of a job from `fairValues`, as `fairKeyOf`. */
export function keyInFair(row: SqlRow): string {
  return (row[CLAIMED_LENGTH] as Maybe<string>) ?? NO_FAIR_KEY;
}

/** A job from `fairValues` and its claim. */
export function decodeFair(row: SqlRow, request: ClaimRequest): JobRow {
  return decoded(row, request, row[CLAIMED_LENGTH] as Maybe<string>);
}

/** A job from `claimedValues` and its claim: `claimedRow` of core/job/decide/store-formulas.ts. */
export function decodeClaimed(row: SqlRow, request: ClaimRequest): JobRow {
  return decoded(row, request, undefined);
}

function decoded(row: SqlRow, request: ClaimRequest, fairKey: Maybe<string> | undefined): JobRow {
  const { queue, now, worker } = request;
  const rest = row[10] === null ? NO_REST : (JSON.parse(row[10] as string) as Rest);
  const [waitAt, totalAt] = [row[8] as Maybe<number>, row[9] as Maybe<number>];
  const heartbeat = rest[11];
  const stallAt = claimEndsAt(heartbeat, request);
  return {
    id: row[0] as string,
    queue,
    type: row[1] as string,
    priority: priorityOf(row[7] as number),
    fence: row[2] as number,
    rev: row[3] as number,
    createdAt: row[4] as number,
    claimedAt: now,
    worker,
    needs: rest[12],
    workflow: rest[0],
    limitKey: rest[1],
    fairKey: fairKey === undefined ? rest[2] : fairKey,
    payload: row[5] as string,
    options: optionsParser(row[6]) as JobRow["options"],
    policy: policyParser(rest[3]) as JobRow["policy"],
    errors: rest[4] === null ? null : (JSON.parse(rest[4]) as JobRow["errors"]),
    progress: rest[5],
    checkpoint: rest[6],
    result: rest[7],
    state: "active",
    wake: "decide",
    wakeAt: claimWakeAt(stallAt, waitAt, totalAt),
    rank: row[7] as number,
    attempt: rest[13],
    returns: rest[14],
    expiredClaims: rest[15],
    waitAt,
    totalAt,
    startedAt: rest[8],
    softAt: rest[9],
    hardAt: rest[10],
    stallAt,
    heartbeat,
    finishedAt: null,
    pruneAt: null,
    deadLetter: false,
  };
}
