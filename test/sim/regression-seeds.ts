/** Seeds of the simulator of workflows that once broke a rule, with what each of them showed. */
export const WORKFLOW_REGRESSION_SEEDS: readonly (readonly [seed: number, showed: string])[] = [
  [101, "a defect that was found before this list existed"],
  [154, "a defect that was found before this list existed"],
  [5_000_037, "a process that had stood still cancelled a callback after the end of its workflow"],
];
