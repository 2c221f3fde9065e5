import type { PoolStrategy } from "../../core/fair/worker-pool.ts";
import type { PolicySettings } from "../../core/job/job.ts";
import type { VersionSet } from "../../core/registry/job-version.ts";

/** What a remote worker asks for. */
export interface RemoteFetch {
  readonly queues: readonly string[];
  readonly count: number;
  /** The pool of the worker: its strategy decides, and it gets jobs of the pool's queues only. */
  readonly pool?: string | undefined;
  /** How to choose among the queues if there is no pool. Default: in their order. */
  readonly strategy?: PoolStrategy | undefined;
  readonly weights?: Readonly<Record<string, number>> | undefined;
  readonly worker?: string | undefined;
  /** The name of the key of the worker, if the server has keys. */
  readonly caller?: string | undefined;
  /** Whether the worker hears the soft signal (SEMANTICS 1.4). */
  readonly hears: boolean;
  readonly visibility?: number | undefined;
  /** Settings of the worker's definitions by job type: the definition source of SEMANTICS 2. */
  readonly definitions?: ReadonlyMap<string, PolicySettings> | undefined;
  /** The versions that the worker runs, by job type. */
  readonly versions?: ReadonlyMap<string, VersionSet> | undefined;
  /** How many milliseconds to wait if there is no job. */
  readonly wait?: number | undefined;
  /** Whether the worker has closed its connection: then jobs are not handed out. */
  readonly isGone?: (() => boolean) | undefined;
  /** The worker's key for this fetch. A repeated fetch with the same key gets the same jobs. */
  readonly key?: string | undefined;
}
