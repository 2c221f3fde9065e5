import { refuse } from "../errors.ts";
import { type AddressRange, forbiddenKind, isIn, readAddress, readRange } from "./address-range.ts";

/** What an operator allows beyond public addresses: names of hosts and ranges of addresses. */
export interface AllowList {
  readonly hosts: ReadonlySet<string>;
  /** `*.example.internal`, without the star. */
  readonly suffixes: readonly string[];
  readonly ranges: readonly AddressRange[];
}

const MOST_ALLOWED = 1_000;
const HOST = /^(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/;

/** Reads entries such as `hooks.internal`, `*.example.internal`, `127.0.0.1` and `10.1.0.0/16`. */
export function parseAllowList(entries: readonly string[], field: string): AllowList {
  if (!Array.isArray(entries) || entries.length > MOST_ALLOWED)
    throw refuse("invalid_option", field, entries, `list at most ${MOST_ALLOWED} hosts and address ranges`);
  const allowed = { hosts: new Set<string>(), suffixes: [] as string[], ranges: [] as AddressRange[] };
  for (const [index, entry] of entries.entries()) {
    const text = typeof entry === "string" ? entry.toLowerCase() : "";
    const range = readRange(text.replace(/^\[(.*)\]$/, "$1"));
    if (range) allowed.ranges.push(range);
    // A mistyped address such as 10.0.0.0/33 or 10.0.0 must not become the name of a host.
    else if (!HOST.test(text) || /^[\d./]+$/.test(text)) {
      const fix = 'write a host such as "hooks.internal", or a range such as "10.1.0.0/16"';
      throw refuse("invalid_option", `${field}[${index}]`, entry, fix);
    } else if (text.startsWith("*.")) allowed.suffixes.push(text.slice(1));
    else allowed.hosts.add(text);
  }
  return allowed;
}

export function allowsHost({ hosts, suffixes }: AllowList, host: string): boolean {
  return hosts.has(host) || suffixes.some((suffix) => host.endsWith(suffix));
}

export function allowsAddress({ ranges }: AllowList, text: string): boolean {
  const address = readAddress(text);
  return address !== undefined && ranges.some((range) => isIn(range, address));
}

/** The host of a URL as a resolver gets it: without the brackets of IPv6 and the dot of the root. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
}

/**
 * Why the address that a host has must not be called; null if it may be. `host` is the name in the URL, which the
 * allow-list may name.
 */
export function refusedAddress(allowed: AllowList, host: string, address: string): string | null {
  if (allowsHost(allowed, host) || allowsAddress(allowed, address)) return null;
  return forbiddenKind(address);
}

const URL_LIMIT = 2_048;
/** Ports of other protocols that browsers refuse as well (fetch.spec.whatwg.org, "bad port"), above 1023. */
const BAD_PORTS: ReadonlySet<number> = new Set([
  1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697,
  10_080,
]);

/**
 * Checks the URL of an endpoint. Names are resolved when a call is made, and the address is checked then. A host on
 * the allow-list may have any port and may be called without TLS.
 */
export function checkEndpoint(text: unknown, field: string, allowed: AllowList): string {
  if (typeof text !== "string" || text.length > URL_LIMIT || !URL.canParse(text))
    throw refuse("invalid_option", field, text, `write an https URL of at most ${URL_LIMIT} characters`);
  const url = new URL(text);
  // The value is not shown from here on: it may have a password or a token.
  const shown = `${url.protocol}//${url.hostname}`;
  if (url.protocol !== "https:" && url.protocol !== "http:")
    throw refuse("invalid_option", field, shown, "write an https URL");
  if (url.username !== "" || url.password !== "")
    throw refuse(
      "invalid_option",
      field,
      shown,
      "leave the user and password out; the signature says who calls",
    );
  const host = hostOf(url);
  const isAddress = readAddress(host) !== undefined;
  if (allowsHost(allowed, host) || (isAddress && allowsAddress(allowed, host))) return url.href;
  if (url.protocol === "http:")
    throw refuse(
      "invalid_option",
      field,
      shown,
      "use https, or let the operator of the server allow this host",
    );
  const port = url.port === "" ? 443 : Number(url.port);
  if ((port < 1_024 && port !== 443 && port !== 80) || BAD_PORTS.has(port))
    throw refuse(
      "invalid_option",
      field,
      `${shown}:${port}`,
      "use port 443, or one above 1023 that no other protocol has",
    );
  const kind = isAddress ? forbiddenKind(host) : localName(host);
  if (kind !== null)
    throw refuse(
      "invalid_option",
      field,
      shown,
      `it is ${kind}; use a public host, or let the operator of the server allow this one`,
    );
  return url.href;
}

/** Names that never lead to a public host. */
function localName(host: string): string | null {
  const isLocal = host === "localhost" || /\.(localhost|local|internal|home\.arpa)$/.test(host);
  return isLocal ? "a name of a private network" : null;
}
