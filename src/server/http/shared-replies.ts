import type { Reply } from "../route.ts";

/** Replies that are kept, and characters of one. A larger one is shared only while it is made. */
const MOST_REPLIES = 100;
const MOST_TEXT = 1_000_000;
/** Seconds. A caller that accepts more gets this. */
const OLDEST = 10;

interface Shared {
  readonly reply: Promise<Reply>;
  readonly askedAt: number;
}

/**
 * Replies for callers that accept an age (`Cache-Control: max-age=2` in the request): one computation serves all open
 * tabs. An operator's change drops all of them, so nobody sees an older state after a change.
 */
export class SharedReplies {
  readonly #monotonic: () => number;
  readonly #replies = new Map<string, Shared>();

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** The reply to this request that is at most `age` seconds old, counted from when it was asked for. */
  get(key: string, age: number, make: () => Reply | Promise<Reply>): Promise<Reply> {
    const now = this.#monotonic();
    const known = this.#replies.get(key);
    if (known && now - known.askedAt <= age * 1_000) return known.reply;
    const reply = Promise.resolve().then(make);
    const shared = { reply, askedAt: now };
    this.#replies.delete(key);
    this.#replies.set(key, shared);
    this.#dropOld(now);
    const drop = () => {
      if (this.#replies.get(key) === shared) this.#replies.delete(key);
    };
    reply.then(({ text, body }) => {
      if (body || (text?.length ?? 0) > MOST_TEXT) drop();
    }, drop);
    return reply;
  }

  clear(): void {
    this.#replies.clear();
  }

  /** The map is in the order in which replies were asked for. */
  #dropOld(now: number): void {
    for (const [key, { askedAt }] of this.#replies) {
      if (this.#replies.size <= MOST_REPLIES && now - askedAt <= OLDEST * 1_000) return;
      this.#replies.delete(key);
    }
  }
}

/** The age that a caller accepts, in seconds; 0 if it wants a new reply. */
export function acceptedAge(cacheControl: string | null): number {
  const [, seconds] = /(?:^|[\s,])max-age=(\d{1,6})(?:$|[\s,])/i.exec(cacheControl ?? "") ?? [];
  return seconds === undefined ? 0 : Math.min(OLDEST, Number(seconds));
}
