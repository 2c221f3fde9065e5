import { CurfewError } from "../../core/errors.ts";
import { backoff } from "../../core/pace.ts";
import type { NewTimeout } from "../../core/timeout/timeout.ts";
import { rest } from "../../ports/system.ts";
import type { EngineContext } from "../context.ts";
import { Batcher } from "../runtime/batcher.ts";

const TRIES = 4;
const BACKOFF = { first: 25, factor: 4, most: 400 };

/** Messages sent while a store call is running share the next one. Each promise resolves when its message is durable. */
export function openOutbox(parts: EngineContext): Batcher<NewTimeout, undefined> {
  const call = async (messages: readonly NewTimeout[]): Promise<undefined[]> => {
    await storeMessages(parts, messages);
    return messages.map(() => undefined);
  };
  return new Batcher({ call });
}

/** A lost reply is asked for again under the same ids, which the store knows by then. */
async function storeMessages(parts: EngineContext, messages: readonly NewTimeout[]): Promise<void> {
  const { store, clock, system, storeFailed } = parts;
  for (let tries = 1; ; tries++) {
    try {
      await store.timeouts.insert(messages, { now: clock.now() });
      return;
    } catch (error) {
      storeFailed(error, "send");
      if (tries === TRIES) {
        const says = "send: the store did not take the message; send it again with the same id";
        throw new CurfewError("store_failed", says, { cause: error });
      }
      await rest(system, backoff(tries, BACKOFF));
    }
  }
}
