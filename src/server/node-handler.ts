import type { IncomingMessage, ServerResponse } from "node:http";
import type { HttpReply, RequestHandler } from "./request-handler.ts";
import type { RequestHead } from "./request-head.ts";
import type { Route } from "./route.ts";

const NONE = () => ({});

/**
 * The head of a request as Node has it, read where it is: building web headers out of Node's costs as much as the rest
 * of a small request.
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
 * Serves the routes whose path is fixed straight from Node: these are the ones that workers and producers call all the
 * time. Everything that happens to a request happens here too, in the same order; only the wrapping is left out.
 */
export function nodeHandler(
  door: RequestHandler,
  routes: readonly Route[],
): (incoming: IncomingMessage, outgoing: ServerResponse) => boolean {
  const fixed = new Map<string, Route>();
  for (const route of routes)
    if (!route.path.includes(":") && !route.query) fixed.set(`${route.method} ${route.path}`, route);
  return (incoming, outgoing) => {
    const route = fixed.get(`${incoming.method} ${incoming.url}`);
    if (!route) return false;
    const request = new NodeHead(incoming);
    const isGone = () => outgoing.destroyed;
    const asked = { request, incoming, params: NONE, query: NONE, isGone };
    void door.answer(route, asked).then((answer) => write(answer, incoming, outgoing));
    return true;
  };
}

function write(
  { status, text, headers }: HttpReply,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): void {
  // Somebody who is gone reads no answer.
  if (outgoing.destroyed || outgoing.headersSent) return;
  // A body that was not read to its end would be taken for the next request.
  if (!incoming.readableEnded && incoming.readableDidRead) headers.Connection = "close";
  // Named here, because Node would send a reply of unknown length in chunks.
  if (text !== null) headers["Content-Length"] = String(Buffer.byteLength(text));
  outgoing.writeHead(status, headers);
  outgoing.end(text ?? undefined);
}
