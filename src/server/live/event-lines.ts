import { HttpError } from "../http/http-error.ts";
import type { Reply } from "../route.ts";
import type { EventHub, Feed } from "./event-hub.ts";

/** The most unread bytes of a reader. Beyond this the stream ends, and the reader reconnects where it was. */
const MOST_UNREAD = 2_000_000;
const HELLO = "retry: 2000\n: connected\n\n";
const HEADERS = {
  "Content-Type": "text/event-stream",
  "Cache-Control": "no-cache, no-transform",
  "X-Accel-Buffering": "no",
};

/** The first frame of a stream. `isLast`: nothing follows it. */
export interface Beginning {
  readonly text: string;
  readonly isLast: boolean;
}

export interface LineOptions {
  /** Continue after this cursor. */
  readonly after?: string | undefined;
  /** Runs after the subscription, so that no event is missed in between. */
  readonly begin?: () => Promise<Beginning>;
}

/** A stream of server-sent events. */
export function eventLine(hub: EventHub, feed: Feed, { after, begin }: LineOptions = {}): Reply {
  if (hub.isFull)
    throw new HttpError(
      503,
      "backend_error",
      "Too many event streams are open, or the server is closing; try again later",
      {
        retryable: true,
        headers: { "Retry-After": "5" },
      },
    );
  const encoder = new TextEncoder();
  let leave = () => {};
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        controller.enqueue(encoder.encode(HELLO));
        let isOver = false;
        const reader = {
          push(bytes: Uint8Array) {
            if (isOver || (controller.desiredSize ?? 0) < 0) return false;
            controller.enqueue(bytes);
            return true;
          },
          end() {
            if (!isOver) controller.close();
            isOver = true;
          },
        };
        const off = hub.subscribe(feed, after, reader);
        leave = () => {
          isOver = true;
          off();
        };
        const stop = () => {
          off();
          reader.end();
        };
        begin?.().then(({ text, isLast }) => {
          if (!reader.push(encoder.encode(text)) || isLast) stop();
        }, stop);
      },
      cancel: () => leave(),
    },
    { highWaterMark: MOST_UNREAD, size: (chunk) => chunk.byteLength },
  );
  return { status: 200, text: null, body, headers: HEADERS };
}

/** One event as text. Browsers deliver an event without a name to `onmessage`. */
export function eventFrame(
  data: unknown,
  { name, id }: { readonly name?: string; readonly id?: string } = {},
) {
  const head = `${id === undefined ? "" : `id: ${id}\n`}${name === undefined ? "" : `event: ${name}\n`}`;
  return `${head}data: ${JSON.stringify(data)}\n\n`;
}
