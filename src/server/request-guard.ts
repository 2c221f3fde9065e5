import type { Instant } from "../core/time.ts";
import type { System } from "../ports/system.ts";
import { authenticate, authorize, type Identity, type KeyOptions, Keyring } from "./auth.ts";
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
import type { Right } from "./roles.ts";

export interface GuardOptions {
  /** Keys that callers must bring. Without them everybody who reaches the server may do everything. */
  readonly keys?: readonly KeyOptions[] | Keyring;
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

/** What is looked at of a request; Node's own request fits into it without being made into a web one. */
export interface RequestHeaders {
  readonly method: string;
  readonly headers: { get(name: string): string | null };
  readonly body?: ReadableStream | null;
}

export interface RequestGuard {
  /** Gives the request its id and the headers of its replies. Never refuses. */
  open(request: RequestHeaders): Call;
  /** The answer to a browser that asks whether a page may call; null where the request is something else. */
  preflight(request: RequestHeaders, call: Call): Response | null;
  /** Gives who sent this and has the right, or throws an HttpError with 401, 403 or 429. */
  admit(request: RequestHeaders, right: Right): Identity;
  /** The body as a value: of the right type, within the limits, and JSON. Undefined where there is none. */
  body(request: RequestHeaders, incoming?: Incoming): Promise<unknown>;
  /** Whether everybody may do everything: no keys are asked for. */
  readonly isOpen: boolean;
}

interface GuardDeps {
  readonly system: Pick<System, "monotonic" | "fill">;
  readonly now: () => Instant;
}

/**
 * Everything that happens to a request before a route sees it. These are plain calls and not a chain of middlewares,
 * because replies whose headers are a plain object take the short way through the Node adapter.
 */
export function createGuard(options: GuardOptions, { system, now }: GuardDeps): RequestGuard {
  const { keys } = options;
  const keyring = keys === undefined || keys instanceof Keyring ? keys : new Keyring(keys, { now });
  const limits = checkLimits(options.limits);
  const origins = checkOrigins(options.cors);
  const requestId = createRequestIds(system.fill);
  const limiter = new RateLimiter();

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
    admit(request, right) {
      if (right === "open") return NOBODY;
      if (!keyring) refuseForeignPages(request, origins);
      const identity = authenticate(keyring, request.headers.get("authorization"));
      const rate = identity.rate ?? limits.rate;
      const wait = rate === undefined ? 0 : limiter.take(identity.name, rate, system.monotonic());
      if (wait > 0) throw tooManyRequests(wait);
      authorize(identity, right);
      return identity;
    },
    async body(request, incoming) {
      checkEncoding(request.headers.get("content-encoding"));
      const text = await readBody(request, limits.body, incoming);
      if (text === "") return undefined;
      checkContentType(request.headers.get("content-type"));
      return parseBody(text, limits);
    },
    isOpen: keyring === undefined,
  };
}

const NOBODY: Identity = { name: "anonymous", role: "read-only", rate: undefined };

/**
 * Without keys, a page in this machine's browser could reach a server on loopback. It cannot read the replies, but its
 * orders would be carried out, so what a browser sends on behalf of another site is refused.
 */
function refuseForeignPages(request: RequestHeaders, origins: ReadonlySet<string>): void {
  const origin = request.headers.get("origin");
  if (origin === null || origins.has(origin)) return;
  const host = request.headers.get("host");
  if (host !== null && URL.canParse(origin) && new URL(origin).host === host) return;
  throw new HttpError(403, "forbidden", "Pages of another site may not call this server: allow their origin");
}
