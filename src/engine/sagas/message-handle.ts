import { CurfewError } from "../../core/errors.ts";
import type { Json } from "../../core/schema.ts";
import { type Duration, formatDuration, parseDuration } from "../../core/time.ts";
import type { Timer } from "../../ports/system.ts";
import type { EngineContext } from "../context.ts";
import { REPLIES } from "./saga-addresses.ts";

const POLL = 500;

/** A message that is durable and will be handled. */
export class MessageHandle {
  /** The message's id: sent again under it, the message is recognised by its saga. */
  readonly id: string;
  readonly #parts: EngineContext;

  constructor(parts: EngineContext, id: string) {
    this.#parts = parts;
    this.id = id;
  }

  /**
   * What a handler says with `saga.reply()`, in answer to this message or, for one that started a saga, later. Rejects
   * with `result_timeout` when `within` is over; the message is handled all the same. Replies are kept for an hour.
   */
  reply(options: { readonly within: Duration }): Promise<Json> {
    const within = parseDuration(options?.within, "within");
    const { system, store, waiters, storeFailed } = this.#parts;
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
      const off = waiters.add(this.id, (told) => {
        if (told === "look") void look();
        else if (told === "closed") {
          end(() =>
            reject(new CurfewError("closed", `the engine was closed before message ${this.id} was answered`)),
          );
        }
      });
      const says = `message ${this.id} was not answered within ${formatDuration(within)}; it is handled all the same`;
      const limit = system.after(within, () => end(() => reject(new CurfewError("result_timeout", says))), {
        keepAlive: true,
      });
      void look();
    });
  }
}
