import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { capacityFor, capacityTable } from "../bench/capacity-model.ts";
import { simulateFleet } from "../bench/capacity-sim.ts";

const DEMAND = { jobsPerSecond: 100_000, keptFor: 600, delayed: 0 };
const FLEET = { masters: 4, homes: 8, slots: 50, jobsPerSecond: 20_000, handler: 5, seconds: 1 };

describe("the capacity model (docs/scale.md)", () => {
  it("has the table that the page shows", () => {
    const page = readFileSync(new URL("../docs/scale.md", import.meta.url), "utf8");
    expect(page).toContain(capacityTable());
  });

  it("asks for masters by CPU, or by memory where jobs lie for long", () => {
    expect(capacityFor(DEMAND)).toMatchObject({ first: "CPU", masters: 8, homes: 16 });
    expect(capacityFor({ ...DEMAND, delayed: 1e10 }).first).toBe("memory");
    const many = capacityFor({ ...DEMAND, processes: 10_000 });
    expect(many.looks + many.hints).toBeGreaterThan(many.work);
  });
});

describe("a fleet in virtual time", () => {
  it("starts what is enqueued, and is the same each time", () => {
    const fleet = { name: "calm", ...FLEET, processes: 20 };
    const outcome = simulateFleet(fleet);
    expect(outcome.started / outcome.enqueued).toBeGreaterThan(0.98);
    expect(outcome.pickup.p99).toBeLessThan(100);
    expect(simulateFleet(fleet)).toEqual(outcome);
  });

  it("shows the cost of many processes, of a hot key and of masters that were away", () => {
    const calm = simulateFleet({ name: "calm", ...FLEET, processes: 20 });
    const many = simulateFleet({ name: "many", ...FLEET, processes: 1_000, slots: 1 });
    expect(many.busy.mean).toBeGreaterThan(2 * calm.busy.mean);
    const hot = simulateFleet({ name: "hot", ...FLEET, processes: 20, hot: 0.8 });
    expect(hot.busy.most).toBeGreaterThan(2 * hot.busy.mean);
    const away = { share: 0.5, from: 0.2, to: 1.2 };
    const storm = simulateFleet({ name: "storm", ...FLEET, processes: 20, away, crossing: 0.2, seconds: 4 });
    expect(storm.outbox.p99).toBeGreaterThan(500);
    expect(storm.started / storm.enqueued).toBeGreaterThan(0.95);
  });
});
