import { CurfewError } from "../core/errors.ts";
import type { JournalEvent } from "../core/event/journal-event.ts";
import { backoff } from "../core/pace.ts";
import type { AuditApi, JournalApi } from "../engine/curfew-api.ts";
import type { FollowOptions, JournalPage } from "../engine/events/event-journal.ts";
import { rest } from "../ports/system.ts";
import type { Caller } from "./caller.ts";
import { WAIT } from "./remote-wait.ts";

const PAGE = 200;
const BACKOFF = { first: 250, factor: 2, most: 5_000 };

export function remoteAudit(caller: Caller): AuditApi {
  return { read: (options) => caller.call("audit.read", [options]) };
}

export function remoteJournal(caller: Caller): JournalApi {
  return {
    read: (options) => caller.call("journal.read", [options]),
    latest: (options) => caller.call("journal.latest", [options]),
    follow(options = {}) {
      const { signal, after, ...filter } = options;
      // Ask for the cursor now, so that no event after this call is missed.
      const from =
        after === undefined
          ? caller.call<JournalPage>("journal.latest", [{ limit: 1 }]).then(({ cursor }) => cursor)
          : Promise.resolve(after);
      from.catch(() => {});
      return follow(caller, from, filter, signal);
    },
  };
}

/** Each reply brings what happened since the last one. While the server is away, it asks again and misses nothing. */
async function* follow(
  caller: Caller,
  from: Promise<string | null>,
  filter: Omit<FollowOptions, "after" | "signal">,
  signal: AbortSignal | undefined,
): AsyncGenerator<JournalEvent, void, undefined> {
  let after = await from;
  for (let failures = 0; !signal?.aborted; ) {
    try {
      const asked = { ...filter, after, limit: PAGE };
      const page = await caller.call<JournalPage>("journal.wait", [asked, WAIT], { wait: WAIT, signal });
      failures = 0;
      for (const event of page.events) {
        yield event;
        if (signal?.aborted) return;
      }
      after = page.cursor ?? after;
    } catch (error) {
      if (signal?.aborted) return;
      if (!(error instanceof CurfewError)) throw error;
      if (error.code === "closed") return;
      if (error.code !== "server_failed") throw error;
      failures += 1;
      await rest(caller.system, backoff(failures, BACKOFF));
    }
  }
}
