/** Seeds that once broke a rule, with what each of them showed. */
export const REGRESSION_SEEDS: readonly (readonly [seed: number, showed: string])[] = [
  [7_009_570, "a bulk retry ran a job twice that failed again after a lost reply"],
  [9_108_860, "a bulk retry ran two jobs of one batch twice after a lost reply"],
  [9_110_809, "a bulk retry ran a job twice that timed out again after a lost reply"],
  [9_111_622, "a bulk retry ran a job twice after a lost reply and a dropped commit"],
  [9_113_563, "a bulk retry ran a job twice that used up its attempts after a lost reply"],
];

/** The same for the simulator of workflows. */
export const WORKFLOW_REGRESSION_SEEDS: readonly (readonly [seed: number, showed: string])[] = [
  [101, "a defect that was found before this list existed"],
  [154, "a defect that was found before this list existed"],
  [5_000_037, "a process that had stood still cancelled a callback after the end of its workflow"],
];
