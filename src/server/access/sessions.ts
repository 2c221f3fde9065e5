import { hash } from "node:crypto";
import type { Instant } from "../../core/time.ts";
import type { System } from "../../ports/system.ts";
import { HttpError } from "../http/http-error.ts";
import type { RequestHead } from "../http/request-head.ts";
import type { Identity, Keyring } from "./auth.ts";

const COOKIE = "curfew_session";
const ID_BYTES = 32;
const ID = /(?:^|;\s*)curfew_session=([A-Za-z0-9_-]{43})(?:;|$)/;
/** One working day. */
const LASTS = 12 * 3_600_000;
/** Beyond this, the oldest session ends. */
const MOST_SESSIONS = 10_000;
/** The same for the sessions of one key, so that the holder of a key cannot end the sessions of others. */
const MOST_OF_KEY = 100;
/** A page of another site can send this header only after a preflight, which is refused. */
const OWN_PAGE_HEADER = "x-curfew-dashboard";

interface Session {
  /** The digest of the key that opened it. The session ends with the key. */
  readonly digest: string;
  readonly endsAt: Instant;
  /** The tenant that its pages show. A stream of events cannot send a header. */
  tenant: string | null;
}

export interface FoundSession {
  readonly tenant: string | null;
  readonly identity: Identity;
  readonly endsAt: Instant;
}

interface SessionParts {
  readonly keyring: Keyring;
  /** The path of the dashboard. The browser sends the cookie only below it. */
  readonly base: string;
  readonly now: () => Instant;
  readonly fill: System["fill"];
}

/**
 * Browser sessions. The cookie holds a random id, never the key. The server keeps only digests, in memory: a restart ends
 * all sessions, and a memory dump reveals no key.
 */
export class Sessions {
  readonly #parts: SessionParts;
  readonly #byId = new Map<string, Session>();

  constructor(parts: SessionParts) {
    this.#parts = parts;
  }

  /** Opens a session for a key. Returns it and the `Set-Cookie` header. */
  open(key: string, request: Pick<RequestHead, "headers">): FoundSession & { readonly cookie: string } {
    const { keyring, now, fill } = this.#parts;
    const found = keyring.find(key);
    if (typeof found === "string") {
      const message =
        found === "expired" ? "This key is no longer valid; ask for a new one" : "This key is not known";
      throw new HttpError(401, "unauthorized", message);
    }
    const bytes = new Uint8Array(ID_BYTES);
    fill(bytes);
    const id = Buffer.from(bytes).toString("base64url");
    const endsAt = now() + LASTS;
    const digest = digestOf(key);
    this.#makeRoom(digest);
    this.#byId.set(digestOf(id), { digest, endsAt, tenant: null });
    return { identity: found, endsAt, tenant: null, cookie: this.#cookie(id, LASTS / 1_000, request) };
  }

  find(request: Pick<RequestHead, "headers">): FoundSession | null {
    const cookies = request.headers.get("cookie");
    const id = cookies === null ? undefined : ID.exec(cookies)?.[1];
    if (id === undefined) return null;
    const name = digestOf(id);
    const session = this.#byId.get(name);
    if (!session) return null;
    const identity = this.#parts.keyring.findByDigest(session.digest);
    if (typeof identity === "object" && session.endsAt > this.#parts.now())
      return { identity, endsAt: session.endsAt, tenant: session.tenant };
    this.#byId.delete(name);
    return null;
  }

  /** Sets the tenant that the pages of a session show. */
  choose(request: Pick<RequestHead, "headers">, tenant: string | null): void {
    const id = ID.exec(request.headers.get("cookie") ?? "")?.[1];
    const session = id === undefined ? undefined : this.#byId.get(digestOf(id));
    if (session) session.tenant = tenant;
  }

  /** Ends the session of a request, if any. Returns the `Set-Cookie` header that removes the cookie. */
  close(request: Pick<RequestHead, "headers">): string {
    const id = ID.exec(request.headers.get("cookie") ?? "")?.[1];
    if (id !== undefined) this.#byId.delete(digestOf(id));
    return this.#cookie("", 0, request);
  }

  #makeRoom(digest: string): void {
    // A map keeps the order in which keys were added.
    const own = [...this.#byId].filter(([, session]) => session.digest === digest);
    if (own.length >= MOST_OF_KEY) this.#byId.delete((own[0] as [string, Session])[0]);
    for (const name of this.#byId.keys()) {
      if (this.#byId.size < MOST_SESSIONS) return;
      this.#byId.delete(name);
    }
  }

  #cookie(value: string, maxAge: number, { headers }: Pick<RequestHead, "headers">): string {
    // `Origin` shows the browser's protocol; a proxy may speak plain HTTP to this server.
    const isSecure = headers.get("origin")?.startsWith("https:") ?? false;
    const path = this.#parts.base;
    return `${COOKIE}=${value}; Path=${path}; Max-Age=${maxAge}; HttpOnly; SameSite=Strict${isSecure ? "; Secure" : ""}`;
  }
}

function digestOf(text: string): string {
  return hash("sha256", text, "buffer").toString("latin1");
}

/**
 * Refuses a change that another site's page requests with this browser's cookies. `Sec-Fetch-Site`, or `Origin` in older
 * browsers, names the site. Our own header proves that our own script sent the request.
 */
export function refuseForgery({ method, headers }: RequestHead): void {
  if (method === "GET" || method === "HEAD") return;
  const site = headers.get("sec-fetch-site");
  const isOwn = site === null ? isSameHost(headers) : site === "same-origin";
  if (isOwn && headers.get(OWN_PAGE_HEADER) !== null) return;
  const message = `Only the dashboard's own pages may change things with a login; send a key, or ${OWN_PAGE_HEADER}: 1 from the same origin`;
  throw new HttpError(403, "forbidden", message);
}

function isSameHost(headers: RequestHead["headers"]): boolean {
  const origin = headers.get("origin");
  const host = headers.get("host");
  return origin !== null && host !== null && URL.canParse(origin) && new URL(origin).host === host;
}
