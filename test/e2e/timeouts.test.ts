import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, inject, it } from "vitest";
import { type OpenedTimeouts, openTimeouts } from "../../src/timeouts.ts";
import { createDatabase } from "../postgres.ts";
import { killChild } from "./support/kill-child.ts";
import { program } from "./support/program.ts";

const KILLS = 8;
const EACH = 75;
const CHILD = program(new URL("./timeouts/child.ts", import.meta.url));
const children: ChildProcess[] = [];
/** Undone after the last test, because the tests of both stores run side by side. */
const closing: (() => unknown)[] = [];

afterAll(async () => {
  for (const child of children) await killChild(child);
  for (const close of closing.toReversed()) await close();
});

/** A process of its own, and what it tells, in order. */
function start(deed: string, store: string, skew = 0): { child: ChildProcess; next(): Promise<unknown> } {
  const child = fork(CHILD, [deed, store, String(skew)], { execArgv: [] });
  children.push(child);
  const told: unknown[] = [];
  let wake = () => {};
  child.on("message", (message) => {
    told.push(message);
    wake();
  });
  return {
    child,
    async next() {
      while (told.length === 0) await new Promise<void>((resolve) => (wake = resolve));
      return told.shift();
    },
  };
}

const STORES = {
  async sqlite() {
    const folder = mkdtempSync(join(tmpdir(), "curfew-timeouts-"));
    closing.push(() => rmSync(folder, { recursive: true }));
    return `sqlite:${join(folder, "curfew.db")}`;
  },
  async postgres() {
    const database = await createDatabase(inject("postgresUrl"));
    closing.push(() => database[Symbol.asyncDispose]());
    return database.url;
  },
};

async function open(store: string): Promise<OpenedTimeouts> {
  const timeouts = await openTimeouts({ store });
  closing.push(() => timeouts.close());
  return timeouts;
}

function ids(count: number, from = 0): string[] {
  return Array.from({ length: count }, (_, index) => `t${String(index + from).padStart(5, "0")}`);
}

describe.concurrent.each(Object.entries(STORES))(
  "timeouts on %s, in processes of their own",
  (name, address) => {
    it("two that claim at once never hold the same, and all are found", async ({ expect }) => {
      const store = await address();
      const timeouts = await open(store);
      const all = ids(2_000);
      await timeouts.insertMany(all.map((id) => ({ id, destination: "mail", dueAt: "0s" })));
      const processes = [start("claim", store), start("claim", store)];
      for (const { next } of processes) expect(await next()).toBe("ready");
      for (const { child } of processes) child.send("go");
      // A process that gets no CPU for a second would find nothing left.
      for (const { next } of processes) expect(await next()).toBe("claimed");
      for (const { child } of processes) child.send("go on");
      const held = await Promise.all(processes.map(({ next }) => next() as Promise<string[]>));
      for (const each of held) expect(each.length).toBeGreaterThan(0);
      expect(held.flat().toSorted()).toEqual(all);
    });

    it("one that is killed between claim and remove loses nothing: its lease runs out", async ({
      expect,
    }) => {
      const store = await address();
      const timeouts = await open(store);
      const all = ids(20);
      await timeouts.insertMany(all.map((id) => ({ id, destination: "mail", dueAt: "0s" })));
      const { child, next } = start("hold", store);
      const held = (await next()) as { id: string; owner: string; leaseUntil: number }[];
      await killChild(child);
      expect(held.map(({ id }) => id)).toEqual(all);
      expect(await timeouts.claimDue()).toEqual([]);
      const [first] = held as [(typeof held)[number]];
      await expect.poll(() => timeouts.nextDueAt()).toBe(first.leaseUntil);
      const again: string[] = [];
      // Real time must pass here: the lease is the server's to judge.
      await expect.poll(async () => again.push(...(await timeouts.claimDue()).map(({ id }) => id))).toBe(20);
      expect(again).toEqual(all);
      const lost = timeouts.remove(first.id, first.owner);
      await expect(lost).rejects.toMatchObject({ name: "ConcurrencyError", reason: "stolen" });
    });

    it("dispatchers that are killed again and again: each timeout is sent, none early, none after its cancel", async ({
      expect,
    }) => {
      const store = await address();
      const timeouts = await open(store);
      const [all, cancelled] = [ids(KILLS * EACH), new Set(ids(60, 9_000))];
      const insert = (batch: Iterable<string>, first: number) =>
        timeouts.insertMany(
          [...batch].map((id, index) => ({
            id,
            destination: "mail",
            dueAt: { after: `${first + index * 15}ms` },
          })),
        );
      await insert(cancelled, 2_000);
      for (const id of cancelled) expect(await timeouts.cancel({ id })).toEqual({ pending: 1, leased: 0 });
      const sent: { id: string; early: number }[] = [];
      const spawn = () => {
        const served = start("serve", store);
        void (async () => {
          for (;;) {
            const message = await served.next();
            if (message !== "ready") sent.push(message as { id: string; early: number });
          }
        })();
        return served.child;
      };
      const running = [spawn(), spawn()];
      for (let kill = 0; kill < KILLS; kill++) {
        // Each kill has work of its own: a slow process finds that everything is due.
        await insert(all.slice(kill * EACH, (kill + 1) * EACH), 500);
        const before = sent.length;
        // Waits for some to be sent rather than for time, so that kills fall into the work.
        await expect.poll(() => sent.length, { interval: 10 }).toBeGreaterThan(before + 10);
        await killChild(running[kill % 2] as ChildProcess);
        running[kill % 2] = spawn();
      }
      await expect.poll(() => timeouts.list({}, { limit: 1 })).toEqual([]);
      expect(new Set(sent.map(({ id }) => id))).toEqual(new Set(all));
      expect(sent.filter(({ early }) => early > 0)).toEqual([]);
    });

    if (name === "postgres") {
      it("a process whose clock is 10 minutes ahead or behind claims by the server's time", async ({
        expect,
      }) => {
        const store = await address();
        const timeouts = await open(store);
        await timeouts.insertMany([
          ...ids(10).map((id) => ({ id, destination: "mail", dueAt: "0s" as const })),
          ...ids(10, 100).map((id) => ({ id, destination: "mail", dueAt: "5m" as const })),
        ]);
        for (const skew of [600_000, -600_000]) {
          const { child, next } = start("claim", store, skew);
          await next();
          child.send("go");
          expect(await next()).toBe("claimed");
          child.send("go on");
          expect(await next()).toEqual(skew > 0 ? ids(10) : []);
        }
        expect((await timeouts.count()).pending).toBe(10);
      });
    }
  },
);
