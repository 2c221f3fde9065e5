import { type CleanupHook, processor } from "curfew";
import { follow, work } from "./jobs.ts";

interface Turn {
  readonly count: number;
}

function spin(turn: Turn): never {
  for (let count = turn.count; ; count++) if (count < 0) throw new Error("never");
}

export default processor(work, async ({ id, payload, checkpoint, enqueue, log }) => {
  await checkpoint({ begun: true });
  if (payload.isStuck) spin({ count: 1 });
  console.log("printed");
  const { duplicate } = await enqueue(follow, { from: id });
  log("enqueued", { duplicate });
  return { year: payload.at.getUTCFullYear() };
});

export const onCleanup: CleanupHook<typeof work> = ({ log }) => log("never, for a loop hears nothing");
