/** A module that takes its time to load, or never does: as long as the environment says. */
import { processor } from "../../../src/engine/attempt/processor.ts";
import { act } from "./act-job.ts";

const delay = Number(process.env.CURFEW_LOADS_FOR ?? 0);

function loopWhileLoading(): never {
  for (let turns = 0; ; turns++) if (turns < 0) throw new Error("never");
}

if (delay < 0) loopWhileLoading();
await new Promise((resolve) => setTimeout(resolve, delay));

export default processor(act, ({ remaining }) => remaining());
