import assert from "node:assert/strict";
import type { NewTimeout } from "../../core/timeout/timeout.ts";
import type { CalendarRequest } from "../../ports/timeouts.ts";
import { idsOf } from "./test-bed.ts";
import type { TimeoutBed, TimeoutCase } from "./timeout-bed.ts";

/* What operators look at: one timeout, and what is due in a range. */

async function calendars(bed: TimeoutBed): Promise<void> {
  const { timeouts, now } = bed;
  await bed.add({ id: "held" });
  await bed.claimOne();
  const sketches: Partial<NewTimeout>[] = [
    { id: "c", dueAt: now + 10 },
    { id: "d", dueAt: now + 10, destination: "mail" },
    { id: "b", dueAt: now + 20 },
    { id: "a", dueAt: now + 30, destination: "mail" },
    { id: "dead", dueAt: now + 15 },
  ];
  for (const sketch of sketches.toReversed()) await bed.add(sketch);
  await timeouts.release([{ id: "dead", isDead: true }], { now });
  const ids = async (request: Partial<CalendarRequest> = {}) => {
    const whole = { from: 0, before: now + 1_000, after: null, limit: 10 };
    return idsOf(await timeouts.calendar({ ...whole, ...request })).join(" ");
  };
  assert.equal(await ids(), "held c d b a");
  assert.equal(await ids({ limit: 2 }), "held c");
  assert.equal(await ids({ after: { dueAt: now + 10, id: "c" }, limit: 2 }), "d b");
  assert.equal(await ids({ from: now + 10, before: now + 30 }), "c d b");
  assert.equal(await ids({ destination: "mail" }), "d a");
  assert.equal(await ids({ destination: "kit" }), "held c b");
  assert.equal(await ids({ destination: "mail", after: { dueAt: now + 10, id: "d" } }), "a");
  assert.equal(await ids({ from: now + 31 }), "");
  await assert.rejects(timeouts.calendar({ from: 0, before: 1, after: null, limit: 0 }), {
    code: "invalid_limit",
  });
}

export const CALENDAR_CASES: readonly TimeoutCase[] = [
  {
    name: "load: by id, in the order asked for, null for what is not stored",
    async run(bed) {
      const [one, two] = [await bed.add({ payload: "1" }), await bed.add({ headers: { a: 1 } })];
      assert.deepEqual(await bed.timeouts.load([two.id, "nobody", one.id]), [two, null, one]);
      assert.deepEqual(await bed.timeouts.load([]), []);
    },
  },
  {
    name: "calendar: what is not dead, leased or not, by due instant and id, in a range and after a cursor",
    run: calendars,
  },
];
