/** Seeds that once broke a rule, with what each of them showed. */
export const REGRESSION_SEEDS: readonly (readonly [seed: number, showed: string])[] = [
  [7_000_979, "total with unbounded grace ends nothing; the dead job keeps the only slot of its queue"],
  [7_017_089, "jobs wait for a limit whose slots are kept by jobs in a queue without a free slot"],
  [7_018_208, "a job that kills its process, and that nothing ends, keeps the only slot of its queue"],
];
