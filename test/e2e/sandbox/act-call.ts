/** A handler whose only limit is that of its attempt: the call inside it has none of its own. */
import { createCalls } from "../../../src/calls/index.ts";
import { processor } from "../../../src/engine/attempt/processor.ts";
import { act } from "./act-job.ts";

const calls = createCalls();

export default processor(act, async ({ log }) => {
  await calls
    .within({ attempt: "none" }, ({ remaining }) => {
      log(`left: ${remaining() <= 500}`);
      return new Promise<never>(() => {});
    })
    .catch((error) => {
      log(`ended: ${error.name} ${error.kind}`);
      throw error;
    });
});
