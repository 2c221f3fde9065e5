/** When a fair queue counts as busy, and how long its rounds are. */
export interface RoundLimits {
  /** A claimer to which jobs are given at a rate of this many in `busyWithin` milliseconds takes rounds. */
  readonly busyFrom: number;
  readonly busyWithin: number;
  /** How long a round may take, in milliseconds, if keys give several times their weight in it. */
  readonly longest: number;
  /** Each round reads all keys, so it should have this many jobs of each on average, and at least `fewestJobs` in all. */
  readonly jobsOfKey: number;
  readonly fewestJobs: number;
  /** A round of more keys is one of each part of them, by name. */
  readonly mostKeys: number;
}

export const ROUND_LIMITS: RoundLimits = {
  busyFrom: 256,
  busyWithin: 100,
  longest: 250,
  jobsOfKey: 16,
  fewestJobs: 2_048,
  mostKeys: 5_000,
};
