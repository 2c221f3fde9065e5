import type { IncomingMessage } from "node:http";
import type { Instant } from "../core/time.ts";
import type { System } from "../ports/system.ts";
import {
  authenticate,
  authorize,
  type Identity,
  identityOfHost,
  type KeyOptions,
  Keyring,
  type Visitor,
} from "./auth.ts";
import {
  checkLimits,
  type Incoming,
  type LimitOptions,
  parseBody,
  RateLimiter,
  readBody,
  tooManyRequests,
} from "./body-limits.ts";
import { HttpError, type PlainHeaders } from "./http-error.ts";
import {
  checkContentType,
  checkEncoding,
  checkOrigins,
  corsHeaders,
  createRequestIds,
  PREFLIGHT_HEADERS,
  SECURITY_HEADERS,
} from "./http-headers.ts";
import type { RequestHead } from "./request-head.ts";
import type { Right, Role } from "./roles.ts";
import { refuseForgery, Sessions } from "./sessions.ts";

/** What the application around the server is asked about. */
export interface AuthorizeRequest {
  readonly method: string;
  readonly headers: { get(name: string): string | null };
  /** The request as Node has it, with what the application's own middleware put on it. */
  readonly incoming: IncomingMessage | undefined;
}

type Said = Role | Visitor | null;

export interface GuardOptions {
  /** Keys that callers must bring. Without them everybody who reaches the server may do everything. */
  readonly keys?: readonly KeyOptions[] | Keyring;
  /**
   * Who a request without a key comes from, by the login of the application around the server. A role, or a name for
   * the audit and a role; null refuses it.
   */
  readonly authorize?: (request: AuthorizeRequest) => Said | Promise<Said>;
  readonly limits?: LimitOptions;
  /** Origins whose pages may call this server, such as `"https://jobs.example.org"`. None by default. */
  readonly cors?: readonly string[];
}

/** One request on its way through the server. */
export interface Call {
  readonly requestId: string;
  /** Belongs on every reply to this request; made for this call, so a route may add to it. */
  readonly headers: PlainHeaders;
}

export interface RequestGuard {
  /** Gives the request its id and the headers of its replies. Never refuses. */
  open(request: RequestHead): Call;
  /** The answer to a browser that asks whether a page may call; null where the request is something else. */
  preflight(request: RequestHead, call: Call): Response | null;
  /** Gives who sent this and has the right, or throws an HttpError with 401, 403 or 429. */
  admit(request: RequestHead, right: Right, incoming?: Incoming): Identity | Promise<Identity>;
  /** The body as a value: of the right type, within the limits, and JSON. Undefined where there is none. */
  body(request: RequestHead, incoming?: Incoming): Promise<unknown>;
  /** Whether everybody may do everything: no keys are asked for. */
  readonly isOpen: boolean;
  /** Logins of people; null where there are no keys to log in with. */
  readonly sessions: Sessions | null;
}

interface GuardDeps {
  readonly system: Pick<System, "monotonic" | "fill">;
  readonly now: () => Instant;
  /** The path of the dashboard, for its cookie. */
  readonly base?: string;
}

/**
 * Everything that happens to a request before a route sees it. These are plain calls and not a chain of middlewares,
 * because replies whose headers are a plain object take the short way through the Node adapter.
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
    if (session) return { ...session.identity, by: "session" };
    return askHost(options.authorize as NonNullable<GuardOptions["authorize"]>, request, incoming);
  };
  const limited = (identity: Identity, right: Right): Identity => {
    const rate = identity.rate ?? limits.rate;
    const wait = rate === undefined ? 0 : limiter.take(identity.name, rate, system.monotonic());
    if (wait > 0) throw tooManyRequests(wait);
    authorize(identity, right);
    return identity;
  };
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
    admit(request, right, incoming) {
      if (right === "open") return NOBODY;
      if (!keyring) refuseForeignPages(request, origins);
      const identity = identify(request, incoming);
      return identity instanceof Promise
        ? identity.then((known) => limited(known, right))
        : limited(identity, right);
    },
    async body(request, incoming) {
      checkEncoding(request.headers.get("content-encoding"));
      const text = await readBody(request, limits.body, incoming);
      if (text === "") return undefined;
      checkContentType(request.headers.get("content-type"));
      return parseBody(text, limits);
    },
    isOpen: keyring === undefined,
    sessions,
  };
}

/** Where only the application decides, no key is known, and still nobody comes in without being asked about. */
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

const NOBODY: Identity = { name: "anonymous", role: "read-only", rate: undefined };

/**
 * Without keys, a page in this machine's browser could reach a server on loopback. It cannot read the replies, but its
 * orders would be carried out, so what a browser sends on behalf of another site is refused.
 */
function refuseForeignPages(request: RequestHead, origins: ReadonlySet<string>): void {
  const origin = request.headers.get("origin");
  if (origin === null || origins.has(origin)) return;
  const host = request.headers.get("host");
  if (host !== null && URL.canParse(origin) && new URL(origin).host === host) return;
  throw new HttpError(403, "forbidden", "Pages of another site may not call this server: allow their origin");
}
