import type { Inspector, Store } from "../../src/ports/store.ts";
import { depthOf } from "../../src/testing/read-store.ts";
import type { Broken } from "./kit-self-broken.ts";

function inspectWith(change: (inspect: Inspector) => Partial<Inspector>): Broken["change"] {
  return (store: Store) => ({ inspect: { ...store.inspect, ...change(store.inspect) } });
}

const SECTION = "scans and pages";

const LINES = "positions in line";

/** Stores that are wrong in what they say about a job that waits, by what is wrong. */
export const BROKEN_LINES = {
  "counts all jobs of a line as ahead": {
    change: inspectWith((inspect) => ({
      ahead: (line, { id }, most) => inspect.ahead(line, { rank: Number.MAX_SAFE_INTEGER, id }, most),
    })),
    foundBy: [[LINES, "by rank and id"]],
  },
  "counts beyond the bound": {
    change: inspectWith((inspect) => ({
      ahead: (line, before) => inspect.ahead(line, before, 1_000),
      slots: (line) => inspect.slots(line, 1_000),
    })),
    foundBy: [
      [LINES, "up to its bound"],
      [LINES, "up to a bound"],
    ],
  },
  "forgets retries that keep their slot": {
    change: inspectWith((inspect) => ({
      slots: async (line, most) => ({ ...(await inspect.slots(line, most)), retryable: 0 }),
    })),
    foundBy: [[LINES, "a retry that keeps its slot"]],
  },
  "names queues without an available job": {
    change: inspectWith((inspect) => ({
      readyQueues: async () => [...(await inspect.depths()).keys()],
    })),
    foundBy: [[LINES, "queues with available jobs"]],
  },
  "takes the job that runs next for the oldest one": {
    change: inspectWith((inspect) => ({
      async oldestReady(limit) {
        const oldest = await inspect.oldestReady(limit);
        const { jobs } = await inspect.page({ filter: { state: "available" }, after: null }, 100);
        return oldest.map((job) => {
          const ofQueue = jobs.filter(({ queue }) => queue === job.queue);
          const next = ofQueue.reduce((a, b) => (b.rank < a.rank ? b : a), ofQueue[0] ?? job);
          return { queue: next.queue, id: next.id, rank: next.rank, createdAt: next.createdAt };
        });
      },
    })),
    foundBy: [[LINES, "the oldest available job"]],
  },
  "forgets the unique keys of finished jobs": {
    change: inspectWith((inspect) => ({
      async uniqueKeys(ids) {
        const held = new Set((await inspect.holders(null, 100)).map(({ key }) => key));
        return (await inspect.uniqueKeys(ids)).map((key) => (key !== null && held.has(key) ? key : null));
      },
    })),
    foundBy: [[SECTION, "a named job has"]],
  },
} satisfies Record<string, Broken>;

/** Stores that are wrong in how they are walked through, by what is wrong. */
export const BROKEN_WALKS = {
  "ignores that a scan is brief": {
    change: inspectWith((inspect) => ({
      page: ({ filter, after, newestFirst = false }, limit) =>
        inspect.page({ filter, after, newestFirst }, limit),
    })),
    foundBy: [[SECTION, "a brief scan"]],
  },
  "walks in one direction only": {
    change: inspectWith((inspect) => ({
      page: (walk, limit) => inspect.page({ ...walk, newestFirst: false }, limit),
    })),
    foundBy: [
      [SECTION, "in both directions"],
      [SECTION, "newest first too"],
    ],
  },
  "walks to the end in one step": {
    change: inspectWith((inspect) => ({
      async page(walk, limit) {
        const jobs = [];
        let { after } = walk;
        do {
          const page = await inspect.page({ ...walk, after }, limit - jobs.length);
          jobs.push(...page.jobs);
          after = page.cursor;
        } while (after !== null && jobs.length < limit);
        return { jobs, cursor: after };
      },
    })),
    foundBy: [[SECTION, "bounded number"]],
  },
  "says that a walk is over when a page is empty": {
    change: inspectWith((inspect) => ({
      async page(walk, limit) {
        const page = await inspect.page(walk, limit);
        return page.jobs.length === 0 ? { ...page, cursor: null } : page;
      },
    })),
    foundBy: [[SECTION, "bounded number"]],
  },
  "walks dead letters by id": {
    change: inspectWith((inspect) => ({
      async page(walk, limit) {
        const { jobs, cursor } = await inspect.page(walk, limit);
        return { jobs: jobs.toSorted((a, b) => (a.id < b.id ? -1 : 1)), cursor };
      },
    })),
    foundBy: [[SECTION, "in the order in which they ended"]],
  },
  "ignores bounds of time": {
    change: inspectWith((inspect) => ({
      page: ({ filter: { createdFrom: _from, finishedBefore: _before, ...filter }, ...walk }, limit) =>
        inspect.page({ ...walk, filter }, limit),
    })),
    foundBy: [
      [SECTION, "applies its filter"],
      [SECTION, "in the order in which they ended"],
    ],
  },
  "counts what has ended as live": {
    change: inspectWith((inspect) => ({
      async live() {
        const { cancelled } = await depthOf({ inspect });
        const ended = { queue: "a", type: "x", state: "cancelled" as const, count: cancelled };
        return cancelled > 0 ? [...(await inspect.live()), ended] : inspect.live();
      },
    })),
    foundBy: [[SECTION, "live counts"]],
  },
  "numbers lines from the first of a page": {
    change: inspectWith((inspect) => ({
      async logLines(id, after, limit) {
        return (await inspect.logLines(id, after, limit)).map((line, index) => ({ ...line, seq: index + 1 }));
      },
    })),
    foundBy: [[SECTION, "lines of a log"]],
  },
  "lists unique keys from the start again": {
    change: inspectWith((inspect) => ({ holders: (_after, limit) => inspect.holders(null, limit) })),
    foundBy: [[SECTION, "unique keys"]],
  },
} satisfies Record<string, Broken>;
