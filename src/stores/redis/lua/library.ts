import { createHash } from "node:crypto";
import { BRIEF_PROGRESS } from "../../../core/job/documents/brief-row.ts";
import { LUA_BASE } from "./base.ts";
import { LUA_COMMIT } from "./commit.ts";
import { LUA_INSPECT } from "./inspect.ts";
import { LUA_JOBS } from "./jobs.ts";
import { LUA_RECORDS } from "./records.ts";
import { LUA_TIMEOUTS } from "./timeouts.ts";
import { LUA_WORK } from "./work.ts";

/**
 * What each function may do. A full server refuses `grow` and nothing else: a verdict that could not be written would run its
 * job again, and only what ends frees memory.
 */
const FUNCTIONS = {
  enqueue: "grow",
  claim: "write",
  fairKeysOf: "read",
  room: "read",
  take: "write",
  beat: "write",
  sweep: "write",
  look: "read",
  load: "read",
  prune: "write",
  clock: "read",
  commit: "write",
  loadRecords: "read",
  listRecords: "read",
  insertTimeouts: "grow",
  claimTimeouts: "write",
  changeLeases: "write",
  reap: "write",
  cancelTimeouts: "write",
  moveTimeouts: "write",
  loadTimeouts: "read",
  listTimeouts: "read",
  dueTimeouts: "read",
  leasedTimeouts: "read",
  nextTimeout: "read",
  countTimeouts: "read",
  scan: "read",
  depths: "read",
  listNames: "read",
  uniqueKeys: "read",
  limitRows: "read",
  limitIds: "read",
  ahead: "read",
  shares: "read",
  oldest: "read",
  readEvents: "read",
  readLog: "read",
} as const;

export type FunctionName = keyof typeof FUNCTIONS;

const FLAGS = { grow: "{}", write: "{'allow-oom'}", read: "{'no-writes'}" };

export interface Library {
  readonly name: string;
  readonly code: string;
  /** The name of a function in the server. */
  nameOf(name: FunctionName): string;
}

/**
 * The library for one kind of server. Its name and those of its functions carry a hash of the code, so that engines of two
 * versions work on one server side by side.
 */
export function createLibrary({ isCluster }: { readonly isCluster: boolean }): Library {
  const publish = `local PUBLISH = '${isCluster ? "SPUBLISH" : "PUBLISH"}'\nlocal BRIEF_PROGRESS = '${BRIEF_PROGRESS}'`;
  const parts = [LUA_BASE, LUA_JOBS, LUA_RECORDS, LUA_TIMEOUTS, LUA_COMMIT, LUA_WORK, LUA_INSPECT];
  const body = [publish, ...parts].join("\n");
  const hash = createHash("sha256").update(body).digest("hex").slice(0, 10);
  const nameOf = (name: string) => `curfew_${hash}_${name}`;
  const registered = Object.entries(FUNCTIONS).map(
    ([name, kind]) =>
      `redis.register_function{function_name='${nameOf(name)}', callback=api.${name}, flags=${FLAGS[kind]}}`,
  );
  const name = `curfew_${hash}`;
  return { name, code: [`#!lua name=${name}`, body, ...registered].join("\n"), nameOf };
}
