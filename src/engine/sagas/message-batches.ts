import { CurfewError } from "../../core/errors.ts";
import { backoff } from "../../core/pace.ts";
import type { NewTimeout } from "../../core/timeout/timeout.ts";
import { rest } from "../../ports/system.ts";
import type { EngineContext } from "../context.ts";
import { Batcher } from "../runtime/batcher.ts";

const TRIES = 4;
const BACKOFF = { first: 25, factor: 4, most: 400 };

/** Messages sent while a store call is running share the next one. Each promise resolves when its message is durable. */
export function openMessageBatches(context: EngineContext): Batcher<NewTimeout, undefined> {
  const call = async (messages: readonly NewTimeout[]): Promise<undefined[]> => {
    await storeMessages(context, messages);
    return messages.map(() => undefined);
  };
  return new Batcher({ call });
}

/** Retries with the same ids, so a message whose reply was lost is not stored twice. */
async function storeMessages(context: EngineContext, messages: readonly NewTimeout[]): Promise<void> {
  const { store, clock, system, storeFailed } = context;
  for (let tries = 1; ; tries++) {
    try {
      await store.timeouts.insert(messages, { now: clock.now() });
      return;
    } catch (error) {
      storeFailed(error, "send");
      if (tries === TRIES) {
        const text = "send: the store did not confirm the message; send it again with the same id";
        throw new CurfewError("store_failed", text, { cause: error });
      }
      await rest(system, backoff(tries, BACKOFF));
    }
  }
}
