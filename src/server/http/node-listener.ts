import type { IncomingMessage, ServerResponse } from "node:http";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import type { CurfewServer } from "../app.ts";

/**
 * The server as a handler of plain Node requests, to be mounted in Express, NestJS, Fastify or Koa. It needs the whole path, so
 * it takes `originalUrl` where a framework has cut off the part under which it is mounted. It reads bodies itself: no body
 * parser may have read them.
 */
export function nodeListener(
  server: Pick<CurfewServer, "fetch">,
): (incoming: IncomingMessage, outgoing: ServerResponse) => void {
  const listener = getRequestListener((request, env) => server.fetch(request, env as HttpBindings), {
    overrideGlobalObjects: false,
  });
  return (incoming, outgoing) => {
    const { originalUrl } = incoming as { readonly originalUrl?: unknown };
    if (typeof originalUrl === "string") incoming.url = originalUrl;
    void listener(incoming, outgoing);
  };
}
