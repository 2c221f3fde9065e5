import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import { recordKind } from "../commit/record-kind.ts";

/** What every worker, local or remote, writes with each beat. */
export interface WorkerBody {
  readonly seenAt: Instant;
  readonly running: number;
  readonly queues?: Json;
  readonly state?: string;
  readonly about?: { readonly [key: string]: Json };
}

export const WORKERS = recordKind<WorkerBody>("worker");

/** Remote workers name themselves, so a prefix keeps their names apart from the ids of local workers. */
const REMOTE_PREFIX = "remote:";

export function remoteName(id: string): string {
  return `${REMOTE_PREFIX}${id}`;
}
