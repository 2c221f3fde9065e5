import { expect, it } from "vitest";
import { noisySignals } from "./noisy.ts";

const use = (active: number, waiting: number) => ({ active, waiting });

it("a tenant that has more than ten times the median waiting is noisy", () => {
  expect(noisySignals([use(0, 1_001), use(0, 100), use(0, 90)])).toEqual([["queue_depth_ratio"], [], []]);
  expect(noisySignals([use(0, 1_000), use(0, 100), use(0, 90)])).toEqual([[], [], []]);
});

it("a tenant that runs more than half of all jobs is noisy", () => {
  expect(noisySignals([use(11, 0), use(5, 0), use(5, 0)])).toEqual([["active_job_ratio"], [], []]);
  expect(noisySignals([use(10, 0), use(5, 0), use(5, 0)])).toEqual([[], [], []]);
});

it("a tenant may be noisy in both ways, and beside idle ones", () => {
  expect(noisySignals([use(50, 500), use(0, 0)])).toEqual([["queue_depth_ratio", "active_job_ratio"], []]);
});

it("few jobs and a tenant alone are never noisy", () => {
  expect(noisySignals([use(9, 99), use(0, 0)])).toEqual([[], []]);
  expect(noisySignals([use(1_000, 1_000)])).toEqual([[]]);
  expect(noisySignals([])).toEqual([]);
});
