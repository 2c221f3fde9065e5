import type { EngineContext } from "../context.ts";
import type { EventJournal } from "../events/event-journal.ts";
import { UnattendedCounter } from "../operations/unattended.ts";
import { Loop } from "../runtime/loop.ts";

const EVERY = 5_000;

/** Reads the settings that other processes may have changed, and looks for queues that nobody works on. */
export function settingsLoop(context: EngineContext, journal: EventJournal): Loop {
  const { system, logger, storeFailed } = context;
  const unattended = new UnattendedCounter(context);
  return new Loop({
    name: "settings",
    system,
    logger,
    round: async () => {
      await context.queues.refresh();
      await journal.refresh();
      await unattended.round();
      return EVERY * context.idlePollFactor;
    },
    onError: (error) => storeFailed(error, "settings"),
  });
}
