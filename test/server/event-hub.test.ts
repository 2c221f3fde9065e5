import { expect, it } from "vitest";
import type { JournalEvent } from "../../src/core/event/journal-event.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { silentLogger } from "../../src/ports/log.ts";
import { EventHub, type Feed } from "../../src/server/live/event-hub.ts";
import { createSimSystem } from "../../src/testing/index.ts";

const eventOf = (nth: number) => ({ cursor: `c${nth}`, type: "job.enqueued" }) as JournalEvent;
const feed: Feed = { name: "test", filter: {}, frame: ({ cursor }) => `${cursor} ` };

/** A hub over a journal whose followers hear of events only when they are told, however long these can be read. */
function openHub(stored: readonly number[]) {
  const system = createSimSystem({ seed: 1, startAt: 0 });
  let tell: (event: JournalEvent) => void = () => {};
  let followers = 0;
  const journal = {
    async *follow({ signal }: { readonly signal: AbortSignal }) {
      followers += 1;
      signal.addEventListener("abort", () => {
        followers -= 1;
      });
      const waiting: JournalEvent[] = [];
      let wake = () => {};
      tell = (event) => {
        waiting.push(event);
        wake();
      };
      for (;;) {
        while (waiting.length > 0) yield waiting.shift() as JournalEvent;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    read: async () => ({ events: stored.map(eventOf), cursor: "end", hasMore: false }),
  };
  const hub = new EventHub({ journal } as unknown as Engine, system, silentLogger);
  return {
    hub,
    async tell(...events: number[]) {
      for (const nth of events) tell(eventOf(nth));
      await system.advance(100);
    },
    settle: () => system.advance(100),
    followers: () => followers,
  };
}

function readerOf() {
  let text = "";
  return {
    push(bytes: Uint8Array) {
      text += new TextDecoder().decode(bytes);
      return true;
    },
    end() {},
    read: () => text.trim().split(" "),
  };
}

it("a lagging follower does not resend events that a reader caught up on", async () => {
  const { hub, tell, settle } = openHub([1, 2, 3]);
  const [late, early] = [readerOf(), readerOf()];
  hub.subscribe(feed, undefined, early);
  await settle();
  await tell(1);
  hub.subscribe(feed, null, late);
  await settle();
  expect(late.read()).toEqual(["c1", "c2", "c3"]);
  await tell(2, 3);
  await tell(4, 5);
  expect(late.read()).toEqual(["c1", "c2", "c3", "c4", "c5"]);
  expect(early.read()).toEqual(["c1", "c2", "c3", "c4", "c5"]);
  hub.close();
});

it("reads the journal only while somebody wants events", async () => {
  const { hub, tell, settle, followers } = openHub([]);
  const [dashboard, tail] = [readerOf(), readerOf()];
  const closeDashboard = hub.subscribe(
    { name: "figures", filter: { types: [] }, frame: () => "event ", snapshot: async () => "figures " },
    undefined,
    dashboard,
  );
  await settle();
  expect(dashboard.read()).toEqual(["figures"]);
  expect(followers()).toBe(0);
  const closeTail = hub.subscribe(feed, undefined, tail);
  await settle();
  expect(followers()).toBe(1);
  await tell(1);
  expect(tail.read()).toEqual(["c1"]);
  expect(dashboard.read()).toEqual(["figures"]);
  closeTail();
  expect(followers()).toBe(0);
  closeDashboard();
  hub.close();
});
