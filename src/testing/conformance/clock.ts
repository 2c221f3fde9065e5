import assert from "node:assert/strict";
import type { JobRow } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import type { ConformanceCase, ConformanceSection } from "./kit.ts";
import { claimRequest, found, LEASE, type TestBed } from "./test-bed.ts";

const SKEW = 600_000;

const INSTANTS = [
  "createdAt",
  "claimedAt",
  "wakeAt",
  "waitAt",
  "totalAt",
  "stallAt",
  "startedAt",
  "softAt",
  "hardAt",
  "finishedAt",
  "pruneAt",
] as const;

/** The instants of a row, relative to the start of the story. They must not show whose clock was right. */
function relative(row: JobRow, from: Instant): unknown[] {
  const instants = INSTANTS.map((name) => {
    const at = row[name];
    return at === null ? null : at - from;
  });
  return [row.state, row.wake, row.attempt, row.expiredClaims, row.rev, ...instants];
}

/** One job's life in its own queue, with the time of a caller that passes `now`. */
async function story(bed: TestBed, now: Instant, queue: string): Promise<unknown[]> {
  const { jobs } = bed.store;
  const dueAt = now + 1_000;
  const job = bed.job({ queue, createdAt: now, dueAt, totalAt: now + 100_000 });
  const rank = job.image.rank;
  const image = { ...job.image, state: "scheduled", wake: "ready", wakeAt: dueAt, rank } as const;
  await jobs.enqueue([{ ...job, image }], { now });
  const trace: unknown[] = [];
  const record = async () => trace.push(relative(found(await bed.load(job.id)), now));
  const sweep = async (at: Instant) => {
    const swept = await jobs.sweep({ now: at, limit: 1_000, holdUntil: at + 5_000 });
    trace.push(swept.ready.get(queue) ?? 0, swept.jobs.filter((row) => row.queue === queue).length);
    return swept.jobs.find((row) => row.id === job.id);
  };
  await sweep(dueAt - 1);
  await sweep(dueAt);
  await record();
  await jobs.claim(claimRequest(bed, { queue, now: dueAt }));
  await record();
  await sweep(dueAt + LEASE - 1);
  const due = found(await sweep(dueAt + LEASE));
  await bed.write(due, { type: "wake" }, { now: dueAt + LEASE, outsider: true });
  await record();
  const ending = found(await sweep(now + 100_000));
  await bed.write(ending, { type: "wake" }, { now: now + 100_000, outsider: true });
  await record();
  await jobs.prune({ now: found(await bed.load(job.id)).pruneAt as Instant, eventsBefore: 0, limit: 10 });
  trace.push(await bed.load(job.id));
  return trace;
}

const cases: ConformanceCase[] = [
  {
    name: "only the time that is passed in counts: callers 10 minutes off see the same",
    async run(bed) {
      const behind = await story(bed, bed.now - SKEW, "behind");
      const right = await story(bed, bed.now, "right");
      const ahead = await story(bed, bed.now + SKEW, "ahead");
      assert.deepEqual(behind, right);
      assert.deepEqual(ahead, right);
      assert.equal(right.at(-1), null, "the story ends with the job pruned");
    },
  },
  {
    name: "the store's clock returns whole milliseconds and does not run backwards",
    async run({ store }) {
      let last = 0;
      for (let reading = 0; reading < 20; reading++) {
        const at = await store.clock();
        assert(Number.isInteger(at), `${at} is not a whole number of milliseconds`);
        assert(at >= last, "the clock ran backwards");
        last = at;
      }
    },
  },
];

export const clock: ConformanceSection = { name: "clock", cases };
