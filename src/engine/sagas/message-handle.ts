import { CurfewError } from "../../core/errors.ts";
import type { Json } from "../../core/schema.ts";
import { type Duration, formatDuration, parseDuration } from "../../core/time.ts";
import type { Timer } from "../../ports/system.ts";
import type { EngineContext } from "../context.ts";
import { REPLIES } from "./saga-addresses.ts";

const POLL = 500;

/** A stored message. */
export class MessageHandle {
  /** The id of the message. A message that is sent again with the same id is handled once. */
  readonly id: string;
  readonly #context: EngineContext;

  constructor(context: EngineContext, id: string) {
    this.#context = context;
    this.id = id;
  }

  /**
   * The value that a handler passes to `saga.reply()` for this message. If the message started a saga, a later handler
   * may reply. Rejects with `result_timeout` after `within`; the message is handled anyway. Replies are stored for an
   * hour.
   */
  reply(options: { readonly within: Duration }): Promise<Json> {
    const within = parseDuration(options?.within, "within");
    const { system, store, waiters, storeFailed } = this.#context;
    return new Promise((resolve, reject) => {
      let poll: Timer | undefined;
      let isLooking = false;
      let isOver = false;
      const end = (settle: () => void) => {
        if (isOver) return;
        isOver = true;
        poll?.cancel();
        limit.cancel();
        off();
        settle();
      };
      const look = async () => {
        if (isLooking || isOver) return;
        isLooking = true;
        try {
          const reply = await REPLIES.load(store, this.id);
          if (reply) end(() => resolve(reply.body.value));
        } catch (error) {
          storeFailed(error, "reply");
        }
        isLooking = false;
        poll?.cancel();
        if (!isOver) poll = system.after(POLL, () => void look(), { keepAlive: true });
      };
      const off = waiters.add(this.id, (notice) => {
        if (notice === "look") void look();
        else if (notice === "closed") {
          end(() =>
            reject(
              new CurfewError(
                "closed",
                `reply: the engine was closed before message ${this.id} was answered; the message is handled anyway`,
              ),
            ),
          );
        }
      });
      const text = `reply: message ${this.id} was not answered within ${formatDuration(within)}; it is handled anyway: ask again, or allow more time`;
      const limit = system.after(within, () => end(() => reject(new CurfewError("result_timeout", text))), {
        keepAlive: true,
      });
      void look();
    });
  }
}
