import type { EventHub, Feed } from "./event-hub.ts";
import { HttpError } from "./http-error.ts";
import type { Reply } from "./route.ts";

/** So many bytes may wait for a reader; one that leaves more unread is let go, and comes back where it was. */
const MOST_UNREAD = 2_000_000;
const HELLO = "retry: 2000\n: connected\n\n";
const HEADERS = {
  "Content-Type": "text/event-stream",
  "Cache-Control": "no-cache, no-transform",
  "X-Accel-Buffering": "no",
};

/** What a line begins with, once its reader is on the list; `isLast`: nothing follows. */
export interface Beginning {
  readonly text: string;
  readonly isLast: boolean;
}

export interface LineOptions {
  /** The cursor to go on from. */
  readonly after?: string | undefined;
  /** Read only when the reader is on the list, so that nothing happens unseen in between. */
  readonly begin?: () => Promise<Beginning>;
}

/** A line on which events come as they happen, as server-sent events. */
export function eventLine(hub: EventHub, feed: Feed, { after, begin }: LineOptions = {}): Reply {
  if (hub.isFull)
    throw new HttpError(503, "backend_error", "Too many read along, or the server closes; try again later", {
      retryable: true,
      headers: { "Retry-After": "5" },
    });
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

/** One event as it is sent. Without a name it reaches those who listen for messages of no kind. */
export function eventFrame(
  data: unknown,
  { name, id }: { readonly name?: string; readonly id?: string } = {},
) {
  const head = `${id === undefined ? "" : `id: ${id}\n`}${name === undefined ? "" : `event: ${name}\n`}`;
  return `${head}data: ${JSON.stringify(data)}\n\n`;
}
