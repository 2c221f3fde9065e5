import { waitsForLimit } from "../decide/decision.ts";
import { isTerminal } from "../lifecycle.ts";
import { whyEnded } from "./ended.ts";
import type { WhyFacts } from "./facts.ts";
import { act, printWhy, reason, roughly, type Why, type WhyReason } from "./reason.ts";
import { whyActive } from "./running.ts";
import { whyWaiting } from "./waiting.ts";

/** Why a job does not run, does not end, or ended as it did, from the rows alone. There is always a reason. */
export function whyJob(facts: WhyFacts): Why {
  const { row, now } = facts;
  const first = isTerminal(row.state)
    ? whyEnded(facts)
    : row.state === "active"
      ? whyActive(facts)
      : whyWaiting(facts);
  const reasons = [...first, ...stillRunning(facts)];
  const heldBy = waitsForLimit(row) ? row.limitKey : null;
  const why = { id: row.id, state: row.state, heldBy, at: now, reasons };
  return { ...why, toString: () => printWhy(why) };
}

/** The same answer for a caller whose enqueue added nothing. */
export function whyDuplicate(why: Why): Why {
  const sentence = `Nothing was enqueued: job ${why.id} has the same id or unique key, and was there before.`;
  const held = reason("unique_key_held", sentence, {
    who: { kind: "job", id: why.id },
    action: act("look-at-job", "What follows is about that job.", why.id),
  });
  const more = { ...why, reasons: [held, ...why.reasons] };
  return { ...more, toString: () => printWhy(more) };
}

/** Handlers that still run after the verdict on their attempt. They cannot be ended from within their process. */
function stillRunning({ row, workers, now }: WhyFacts): WhyReason[] {
  return workers.flatMap(({ id, stuck }) =>
    stuck
      .filter(({ job }) => job === row.id)
      .map(({ since }) => {
        const sentence = `A handler still runs in worker ${id}, ${roughly(now - since)} after the verdict on its attempt. It is fenced off: nothing that it does counts.`;
        const text = `Restart worker ${id} to end it, and let the handler stop at its signal or run it in a sandbox.`;
        const who = { kind: "worker", id } as const;
        return reason("handler_still_runs", sentence, {
          since,
          who,
          action: act("look-at-worker", text, id),
        });
      }),
  );
}
