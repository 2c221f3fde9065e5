import type { IncomingMessage } from "node:http";
import type { Instant } from "../../core/time.ts";
import type { System } from "../../ports/system.ts";
import {
  checkLimits,
  type Incoming,
  type LimitOptions,
  parseBody,
  RateLimiter,
  readBody,
  refuseWide,
  tooManyRequests,
} from "../http/body-limits.ts";
import { HttpError, type PlainHeaders } from "../http/http-error.ts";
import {
  checkContentType,
  checkEncoding,
  checkOrigins,
  corsHeaders,
  createRequestIds,
  PREFLIGHT_HEADERS,
  SECURITY_HEADERS,
} from "../http/http-headers.ts";
import { ownHosts } from "../http/loopback.ts";
import type { RequestHead } from "../http/request-head.ts";
import { turn } from "../http/turn.ts";
import {
  authenticate,
  authorize,
  chooseTenant,
  type Identity,
  identityOfHost,
  type KeyOptions,
  Keyring,
  type Visitor,
} from "./auth.ts";
import type { Right, Role } from "./roles.ts";
import { refuseForgery, Sessions } from "./sessions.ts";

/** The request that the host's `authorize` decides about. */
export interface AuthorizeRequest {
  readonly method: string;
  readonly headers: { get(name: string): string | null };
  /** Node's request, with everything that the application's middleware put on it. */
  readonly incoming: IncomingMessage | undefined;
}

type HostAnswer = Role | Visitor | null;

export interface GuardOptions {
  /** Keys that callers must send. Without keys, every caller that reaches the server may do everything. */
  readonly keys?: readonly KeyOptions[] | Keyring;
  /**
   * Identifies a request without a key by the login of the host application. Returns a role, or a name for the audit and
   * a role, or null to refuse the request.
   */
  readonly authorize?: (request: AuthorizeRequest) => HostAnswer | Promise<HostAnswer>;
  readonly limits?: LimitOptions;
  /** Origins whose pages may call this server, such as `"https://jobs.example.org"`. None by default. */
  readonly cors?: readonly string[];
}

/** One request and the start of its reply. */
export interface Call {
  readonly requestId: string;
  /** Headers of the reply. Each call has its own object, so a route may add to it. */
  readonly headers: PlainHeaders;
}

export interface RequestGuard {
  /** Gives the request its id and the headers of its replies. Never refuses. */
  open(request: RequestHead): Call;
  /** The reply to a CORS preflight of an allowed origin, else null. */
  preflight(request: RequestHead, call: Call): Response | null;
  /** Returns the caller if it has the right. Throws an HttpError with 401, 403 or 429 if not. */
  admit(request: RequestHead, right: Right, incoming?: Incoming, call?: Call): Identity | Promise<Identity>;
  /** The JSON value of the body, within the limits. Undefined if there is no body. */
  body(request: RequestHead, incoming?: Incoming): Promise<unknown>;
  /** No keys: every caller may do everything. */
  readonly isOpen: boolean;
  /** Browser sessions; null without keys. */
  readonly sessions: Sessions | null;
}

interface GuardDeps {
  readonly system: Pick<System, "monotonic" | "fill">;
  readonly now: () => Instant;
  /** The path of the dashboard, for its cookie. */
  readonly base?: string;
}

/**
 * Checks every request before its route runs. These are plain calls instead of middleware, because the Node adapter
 * writes replies with plain header objects faster.
 */
export function createGuard(options: GuardOptions, { system, now, base = "/" }: GuardDeps): RequestGuard {
  const keyring = keyringOf(options, now);
  const sessions = keyring ? new Sessions({ keyring, base, now, fill: system.fill }) : null;
  const limits = checkLimits(options.limits);
  const origins = checkOrigins(options.cors);
  const requestId = createRequestIds(system.fill);
  const limiter = new RateLimiter();

  const identify = (request: RequestHead, incoming: Incoming | undefined): Identity | Promise<Identity> => {
    const key = request.headers.get("authorization");
    if (key !== null || !sessions) return authenticate(keyring, key);
    const session = sessions.find(request);
    if (!session && !options.authorize) return authenticate(keyring, key);
    refuseForgery(request);
    if (session) return { ...session.identity, by: "session", chosen: session.tenant ?? undefined };
    return askHost(options.authorize as NonNullable<GuardOptions["authorize"]>, request, incoming);
  };
  const limited = (identity: Identity, right: Right, call: Call | undefined): Identity => {
    const rate = identity.rate ?? limits.rate;
    const at = system.monotonic();
    const wait = rate === undefined ? 0 : limiter.take(identity.name, rate, at);
    if (rate !== undefined && call) {
      const { tokens, fullIn } = limiter.left(identity.name, rate, at);
      Object.assign(call.headers, rateHeaders(rate, tokens, now() + fullIn));
    }
    if (wait > 0) throw tooManyRequests(wait);
    authorize(identity, right);
    return identity;
  };
  const isOwnHost = ownHosts();
  const isAllowed = (origin: string | null): origin is string => origin !== null && origins.has(origin);
  return {
    open(request) {
      const id = requestId(request.headers.get("x-request-id"));
      const headers: PlainHeaders = { ...SECURITY_HEADERS, "X-Request-ID": id };
      if (origins.size > 0) {
        const origin = request.headers.get("origin");
        Object.assign(headers, isAllowed(origin) ? corsHeaders(origin) : { Vary: "Origin" });
      }
      return { requestId: id, headers };
    },
    preflight(request, call) {
      if (request.method !== "OPTIONS" || !isAllowed(request.headers.get("origin"))) return null;
      if (request.headers.get("access-control-request-method") === null) return null;
      return new Response(null, { status: 204, headers: { ...call.headers, ...PREFLIGHT_HEADERS } });
    },
    admit(request, right, incoming, call) {
      if (right === "open") return NOBODY;
      if (!keyring) refuseForeignPages(request, origins, isOwnHost);
      const identity = identify(request, incoming);
      return identity instanceof Promise
        ? identity.then((known) => within(request, limited(known, right, call)))
        : within(request, limited(identity, right, call));
    },
    async body(request, incoming) {
      checkEncoding(request.headers.get("content-encoding"));
      const text = await readBody(request, limits.body, incoming);
      if (text === "") return undefined;
      checkContentType(request.headers.get("content-type"));
      const value = parseBody(text, limits);
      // The checks of a large value take about as long as its parsing, so others get a turn in between.
      if (text.length > LARGE_BODY) await turn();
      refuseWide(value);
      return value;
    },
    isOpen: keyring === undefined,
    sessions,
  };
}

/** The caller within its tenant: of the header, of its session, or of its key. */
function within(request: RequestHead, identity: Identity): Identity {
  const asked = request.headers.get("x-ojs-tenant") ?? identity.chosen ?? null;
  if (asked === null && identity.tenants === undefined) return identity;
  // The page of a login must be shown before somebody has chosen.
  const mayWait = identity.by === "session" && asked === null;
  const tenant = mayWait ? firstOf(identity.tenants) : chooseTenant(identity, asked);
  return tenant === undefined ? identity : { ...identity, tenant };
}

function firstOf(tenants: Identity["tenants"]): string | undefined {
  return Array.isArray(tenants) ? tenants[0] : undefined;
}

/** A caller may send one second's worth at once; the reset is when all of it is free again. */
function rateHeaders(rate: number, tokens: number, resetAt: Instant): PlainHeaders {
  return {
    "X-RateLimit-Limit": String(Math.max(1, Math.floor(rate))),
    "X-RateLimit-Remaining": String(tokens),
    "X-RateLimit-Reset": String(Math.ceil(resetAt / 1_000)),
  };
}

/** With `authorize` alone the keyring is empty, and every request is decided by the application. */
function keyringOf({ keys, authorize }: GuardOptions, now: () => Instant): Keyring | undefined {
  if (keys instanceof Keyring) return keys;
  return keys === undefined && !authorize ? undefined : new Keyring(keys ?? [], { now });
}

async function askHost(
  ask: NonNullable<GuardOptions["authorize"]>,
  { method, headers }: RequestHead,
  incoming: Incoming | undefined,
): Promise<Identity> {
  return identityOfHost(await ask({ method, headers, incoming: incoming as IncomingMessage | undefined }));
}

/** Characters. */
const LARGE_BODY = 100_000;

const NOBODY: Identity = { name: "anonymous", role: "read-only", rate: undefined };

/**
 * Without keys, any page in this machine's browser could reach a server on loopback. It could not read the replies, but
 * its requests would take effect. So requests that a browser sends for another site are refused, and so are foreign host
 * names: a page may make the browser believe that its own name is this machine's.
 */
function refuseForeignPages(
  request: RequestHead,
  origins: ReadonlySet<string>,
  isOwnHost: (host: string) => boolean,
): void {
  const host = request.headers.get("host");
  if (host !== null && !isOwnHost(host))
    throw new HttpError(421, "forbidden", "A server without keys serves only names of its own machine");
  const origin = request.headers.get("origin");
  if (origin !== null && origins.has(origin)) return;
  const site = request.headers.get("sec-fetch-site");
  const isOwnSite = site === null || site === "same-origin" || site === "none";
  if (origin === null && isOwnSite) return;
  if (isOwnSite && origin !== null && host !== null && URL.canParse(origin) && new URL(origin).host === host)
    return;
  throw new HttpError(403, "forbidden", "Pages of another site may not call this server: allow their origin");
}
