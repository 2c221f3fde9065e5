import { refuse } from "../../core/errors.ts";
import type { System } from "../../ports/system.ts";
import { HttpError, type PlainHeaders } from "./http-error.ts";

/** Every reply is data, not a page: no framing, sniffing or caching. */
export const SECURITY_HEADERS: Readonly<PlainHeaders> = {
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
  "Cache-Control": "no-store",
};

/** An echoed id ends up in logs and headers, so it must be short and plain. */
const REQUEST_ID = /^[A-Za-z0-9._:/+=@-]{1,128}$/;

/** Ids for requests without one: a random part per process and a count. */
export function createRequestIds(fill: System["fill"]): (given: string | null) => string {
  const bytes = new Uint8Array(9);
  fill(bytes);
  const prefix = `req_${Buffer.from(bytes).toString("base64url")}_`;
  let count = 0;
  return (given) => (given !== null && REQUEST_ID.test(given) ? given : prefix + (++count).toString(36));
}

const JSON_TYPES = new Set(["application/json", "application/openjobspec+json"]);

/** A Content-Type must be JSON. A body without one is read as JSON. */
export function checkContentType(given: string | null): void {
  if (given === null || given === "application/json" || given === "application/openjobspec+json") return;
  const [type = "", ...parameters] = given.split(";").map((part) => part.trim().toLowerCase());
  const charset = parameters.find((part) => part.startsWith("charset="))?.slice("charset=".length);
  const isUtf8 = charset === undefined || /^"?utf-?8"?$/.test(charset);
  if (JSON_TYPES.has(type) && isUtf8) return;
  const shown = JSON.stringify(given.slice(0, 100));
  throw new HttpError(
    400,
    "invalid_request",
    `Content-Type: ${shown} is not served; send application/openjobspec+json or application/json`,
  );
}

/** Refuses compressed bodies: they could unpack to any size. */
export function checkEncoding(given: string | null): void {
  if (given === null || given.trim().toLowerCase() === "identity") return;
  const shown = JSON.stringify(given.slice(0, 100));
  throw new HttpError(
    400,
    "invalid_request",
    `Content-Encoding: ${shown} is not served; send the body as it is`,
  );
}

/** Origins whose pages may call this server. None by default. */
export function checkOrigins(origins: readonly string[] = []): ReadonlySet<string> {
  for (const origin of origins) {
    const isOrigin = URL.canParse(origin) && new URL(origin).origin === origin;
    if (!isOrigin)
      throw refuse("invalid_option", "cors", origin, 'write origins such as "https://jobs.example.org"');
  }
  return new Set(origins);
}

export function corsHeaders(origin: string): PlainHeaders {
  return {
    "Access-Control-Allow-Origin": origin,
    "Access-Control-Expose-Headers":
      "X-Request-ID, Location, Retry-After, OJS-Version, OJS-Warning, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset",
    "Cross-Origin-Resource-Policy": "cross-origin",
    Vary: "Origin",
  };
}

export const PREFLIGHT_HEADERS: Readonly<PlainHeaders> = {
  "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
  "Access-Control-Allow-Headers":
    "Authorization, Content-Type, X-Request-ID, OJS-Version, X-OJS-Tenant, X-Audit-Reason",
  "Access-Control-Max-Age": "600",
};
