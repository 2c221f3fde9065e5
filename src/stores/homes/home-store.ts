import type { BeatAnswer, BeatRequest, JobStore, Store } from "../../ports/store.ts";

/** A beat for the jobs of one home. The record of the worker is written in its own home only; null elsewhere. */
export interface HomeBeat extends Omit<BeatRequest, "worker"> {
  readonly worker: BeatRequest["worker"] | null;
}

export interface HomeJobStore extends Omit<JobStore, "beat"> {
  beat(request: HomeBeat): Promise<BeatAnswer[]>;
}

/**
 * A store with one home, of which `createHomedStore` makes a store with several. It ignores `homes` of a request.
 * Such a store may also be used alone.
 */
export interface HomeStore extends Omit<Store, "jobs"> {
  readonly jobs: HomeJobStore;
}
