import type { IncomingMessage, ServerResponse } from "node:http";
import type { Route } from "../route.ts";
import type { HttpReply, RequestHandler } from "./request-handler.ts";
import type { RequestHead } from "./request-head.ts";

const NONE = () => ({});

/**
 * The head of a Node request. It reads Node's headers in place: converting them costs as much as the rest of a small
 * request.
 */
class NodeHead implements RequestHead {
  readonly method: string;
  readonly headers: { get(name: string): string | null };

  constructor(incoming: IncomingMessage) {
    this.method = incoming.method ?? "GET";
    const { headers } = incoming;
    this.headers = {
      get(name) {
        const value = headers[name];
        return value === undefined ? null : Array.isArray(value) ? value.join(", ") : value;
      },
    };
  }
}

/**
 * Serves routes with a fixed path without web objects: workers and producers call these most. The checks are the same, in
 * the same order.
 */
export function nodeHandler(
  handler: RequestHandler,
  routes: readonly Route[],
): (incoming: IncomingMessage, outgoing: ServerResponse) => boolean {
  const fixed = new Map<string | undefined, Map<string | undefined, Route>>();
  for (const route of routes) {
    if (route.path.includes(":") || route.query) continue;
    const others = fixed.get(route.method);
    if (others) others.set(route.path, route);
    else fixed.set(route.method, new Map([[route.path, route]]));
  }
  return (incoming, outgoing) => {
    const route = fixed.get(incoming.method)?.get(incoming.url);
    if (!route) return false;
    const request = new NodeHead(incoming);
    const isGone = () => outgoing.destroyed;
    const asked = { request, incoming, params: NONE, query: NONE, isGone };
    void handler.answer(route, asked).then((answer) => write(answer, incoming, outgoing));
    return true;
  };
}

function write(
  { status, text, headers }: HttpReply,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): void {
  if (outgoing.destroyed || outgoing.headersSent) return;
  // Node would parse the unread rest of a body as the next request.
  if (!incoming.readableEnded && incoming.readableDidRead) headers.Connection = "close";
  // Without a length, Node would send chunks.
  if (text !== null) headers["Content-Length"] = String(Buffer.byteLength(text));
  outgoing.writeHead(status, headers);
  outgoing.end(text ?? undefined);
}
