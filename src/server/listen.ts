import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { CurfewError, refuse, refuseUnknownKeys } from "../core/errors.ts";
import { keysOf } from "../core/option-keys.ts";
import { type Duration, parseDuration } from "../core/time.ts";
import { realSystem } from "../engine/runtime/real-system.ts";
import { type Logger, silentLogger } from "../ports/log.ts";
import { rest, type System } from "../ports/system.ts";
import { errorText } from "./http/failures.ts";
import { HttpError } from "./http/http-error.ts";
import { isLoopback, ownHosts } from "./http/loopback.ts";

/** A server that `listen` can serve; `createServer` makes one. */
export interface Listener {
  fetch(request: Request, env: HttpBindings): Response | Promise<Response>;
  /** Serves a Node request. False: it goes through `fetch`. */
  handle?(incoming: IncomingMessage, outgoing: ServerResponse): boolean;
  /** No keys: every caller may do everything. */
  readonly isOpen: boolean;
  /** Ends event streams. */
  hangUp?(): void;
  close(): Promise<void>;
}

export interface ListenOptions {
  /** Default `127.0.0.1`. Other addresses need keys. */
  readonly host?: string;
  /** Default 8080; 0 picks a free port. */
  readonly port?: number;
  readonly logger?: Logger;
  /** How long a closing server waits for requests under way. Default 10 s. */
  readonly closeWithin?: Duration;
  /** The most connections at once; more are refused. Default 10,000. */
  readonly maxConnections?: number;
  readonly system?: System;
}

export interface Listening {
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /** Stops accepting, waits for requests under way, then closes the server. The engine stays open. */
  close(): Promise<void>;
}

const KEYS = keysOf<ListenOptions>({
  host: true,
  port: true,
  logger: true,
  closeWithin: true,
  maxConnections: true,
  system: true,
});
const DEFAULT_PORT = 8080;
const CLOSE_WITHIN = 10_000;
const CLOSE_IDLE_EVERY = 20;

/** Milliseconds and bytes. */
const HTTP_LIMITS = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 2_000,
  keepAliveTimeout: 65_000,
  maxHeaderSize: 16_384,
} as const;
const MOST_HEADERS = 100;
const SILENCE = 120_000;

export async function listen(server: Listener, options: ListenOptions = {}): Promise<Listening> {
  refuseUnknownKeys(options, "listen", KEYS);
  const { host = "127.0.0.1", port = DEFAULT_PORT, logger = silentLogger, system = realSystem } = options;
  const { maxConnections = 10_000 } = options;
  checkPort(port);
  if (!Number.isInteger(maxConnections) || maxConnections < 1)
    throw refuse("invalid_limit", "maxConnections", maxConnections, "use a whole number from 1");
  const within =
    options.closeWithin === undefined
      ? CLOSE_WITHIN
      : parseDuration(options.closeWithin, "closeWithin", { zero: true });
  // A foreign address is refused before a socket opens. A host name is checked again once it is resolved.
  if (server.isOpen && !isLoopback(host)) throw beyondLoopback(host);
  const http = createHttp(server, logger);
  http.maxConnections = maxConnections;
  const sockets = trackSockets(http);
  const address = await bind(http, host, port);
  if (server.isOpen && !isLoopback(address.address)) {
    await stop(http, sockets, 0, system);
    throw beyondLoopback(`${host} (${address.address})`);
  }
  let closing: Promise<void> | undefined;
  return {
    url: `http://${shownHost(host)}:${address.port}`,
    host,
    port: address.port,
    close() {
      if (!closing) server.hangUp?.();
      closing ??= stop(http, sockets, within, system).then(() => server.close());
      return closing;
    },
  };
}

function checkPort(port: number): void {
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw refuse("invalid_option", "port", port, "use a whole number from 0 to 65535");
}

function beyondLoopback(host: string): CurfewError {
  return new CurfewError(
    "invalid_option",
    `host: ${JSON.stringify(host)} can be reached from other machines, and a server without keys lets every ` +
      'caller do everything; make a key with "curfew keys new" and pass it, or listen on 127.0.0.1',
    { field: "host" },
  );
}

function shownHost(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}

function createHttp(server: Listener, logger: Logger): Server {
  const isForUs = server.isOpen ? ownNamesOnly() : () => true;
  const serve = (request: Request, env: HttpBindings) =>
    isForUs(env.incoming)
      ? server.fetch(request, env)
      : errorReply(421, "forbidden", "A server without keys serves only names of its own machine");
  const handle = getRequestListener((request, env) => serve(request, env as HttpBindings), {
    // Only unreadable requests get here: routes handle their own failures.
    errorHandler: (error) => {
      logger.debug({ error }, "unreadable request");
      return errorReply(400, "invalid_request", "The request line or the Host header is not valid");
    },
  });
  const http = createHttpServer(HTTP_LIMITS, (incoming, outgoing) => {
    if (server.handle && isForUs(incoming) && server.handle(incoming, outgoing)) return;
    void handle(incoming, outgoing);
  });
  http.maxHeadersCount = MOST_HEADERS;
  http.timeout = SILENCE;
  http.on("clientError", answerClientError);
  return http;
}

/**
 * A page may make a browser on this machine believe that its own name is ours, and then talk to us as if it were at
 * home. It cannot change the Host header it sends, so a server without keys serves this machine's own names only.
 */
function ownNamesOnly(): (incoming: IncomingMessage) => boolean {
  const isOwnHost = ownHosts();
  return ({ headers: { host } }) => host === undefined || host === "" || isOwnHost(host);
}

const ERROR_HEADERS = { "Content-Type": "application/openjobspec+json", "X-Content-Type-Options": "nosniff" };

/** Refused before it has an id. */
function errorBody(status: number, code: string, message: string): string {
  return errorText(new HttpError(status, code, message), "none");
}

function errorReply(status: number, code: string, message: string): Response {
  return new Response(errorBody(status, code, message), { status, headers: ERROR_HEADERS });
}

const CLIENT_ERRORS: Readonly<Record<string, readonly [status: string, message: string]>> = {
  HPE_HEADER_OVERFLOW: ["431 Request Header Fields Too Large", "The headers are too large"],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ["413 Payload Too Large", "The chunk extensions are too large"],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "The request took too long to arrive"],
};

/** Clients expect JSON, so requests that Node's parser refuses get a JSON reply too; then the connection closes. */
function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, message] = CLIENT_ERRORS[error.code ?? ""] ?? ["400 Bad Request", "This is not valid HTTP"];
  const body = errorBody(Number.parseInt(status, 10), "invalid_request", message);
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/openjobspec+json\r\nContent-Length: ${body.length}\r\n` +
      `Connection: close\r\n\r\n${body}`,
  );
}

function bind(http: Server, host: string, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    http.once("error", (error: NodeJS.ErrnoException) => reject(cannotListen(error, host, port)));
    http.listen({ host, port }, () => resolve(http.address() as AddressInfo));
  });
}

function cannotListen(error: NodeJS.ErrnoException, host: string, port: number): Error {
  const reasons: Record<string, string> = {
    EADDRINUSE: "is already in use; choose another port",
    EACCES: "needs privileges that this user lacks; choose a port above 1023",
    EADDRNOTAVAIL: "is not an address of this machine",
    ENOTFOUND: "is not a known host",
  };
  const reason = reasons[error.code ?? ""];
  if (!reason) return error;
  return new CurfewError("invalid_option", `${host}:${port} ${reason}`, { field: "port", cause: error });
}

function trackSockets(http: Server): ReadonlySet<Socket> {
  const sockets = new Set<Socket>();
  http.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  return sockets;
}

/** Polls for connections that become idle while closing, so that requests before the close pay nothing. */
async function stop(
  http: Server,
  sockets: ReadonlySet<Socket>,
  within: number,
  system: System,
): Promise<void> {
  const closed = new Promise<void>((resolve) => http.close(() => resolve()));
  let isClosed = false;
  closed.then(() => (isClosed = true));
  // Node does not count a connection as idle before its first request.
  for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
  const until = system.monotonic() + within;
  while (!isClosed && system.monotonic() < until) {
    http.closeIdleConnections();
    await Promise.race([closed, rest(system, CLOSE_IDLE_EVERY)]);
  }
  http.closeAllConnections();
  await closed;
}
