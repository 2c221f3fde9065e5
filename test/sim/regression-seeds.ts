/** Seeds that once broke a rule, with what each of them showed. */
export const REGRESSION_SEEDS: readonly (readonly [seed: number, showed: string])[] = [
  [
    7_015_620,
    "a row that others wrote took back the time of an attempt entered after its start was committed",
  ],
  [9_111_996, "a clock reading overtaken by a later one put the engine's clock back by a second"],
  [7_016_717, "the checker took the lease of a claim for the lease of a committed start"],
  [7_000_247, "a bulk action left its timer behind when the engine closed"],
];
