import { hash, timingSafeEqual } from "node:crypto";
import { refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { keysOf } from "../../core/option-keys.ts";
import { checkTenantName } from "../../core/tenant/tenant-name.ts";
import { type Instant, type InstantInput, parseInstant } from "../../core/time.ts";
import { realSystem } from "../../engine/runtime/real-system.ts";
import { HttpError } from "../http/http-error.ts";
import { type Right, ROLES, type Role } from "./roles.ts";

/** One key. Several keys may share a name, so that a new key works before the old one is removed. */
export interface KeyOptions {
  /** The owner of the key; shown in logs and used for the rate limit. */
  readonly name: string;
  readonly role: Role;
  /** What `curfew keys new` printed as the hash: `sha256:` and 64 hexadecimal digits. */
  readonly hash: string;
  /** From this instant on the key is refused. */
  readonly notAfter?: InstantInput;
  /** Requests per second. Default: `limits.rate` of the server. */
  readonly rate?: number;
  /**
   * The tenant that its callers work within, or several of which the header `X-OJS-Tenant` chooses one; `"*"` for all.
   * Left out: they work on what belongs to no tenant, and an admin may choose any.
   */
  readonly tenant?: string | readonly string[];
}

/** Who sent a request. */
export interface Identity {
  readonly name: string;
  readonly role: Role;
  readonly rate: number | undefined;
  /** The tenants that it may choose; left out: none, or any for an admin. */
  readonly tenants?: readonly string[] | "*" | undefined;
  /** The tenant of this request; left out: what belongs to none. */
  readonly tenant?: string | undefined;
  /** The tenant that a browser session shows. */
  readonly chosen?: string | undefined;
  /** The caller's reason for the audit; only on audited routes. */
  readonly reason?: string | undefined;
  /** How the caller was identified. Left out: by a key. */
  readonly by?: "session" | "host" | "nobody";
}

/** The caller of a request, as the host application names it. */
export interface Visitor {
  readonly name: string;
  readonly role: Role;
  /** As of a key. */
  readonly tenant?: KeyOptions["tenant"];
}

interface Key extends Identity {
  readonly digest: Buffer;
  readonly notAfter: Instant | null;
}

const KEY_BYTES = 32;
const PREFIX = "curfew_";
const KEY = /^curfew_[A-Za-z0-9_-]{43}$/;
const HASH = /^sha256:[0-9a-f]{64}$/;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/;
const FIELDS = keysOf<KeyOptions>({
  name: true,
  role: true,
  hash: true,
  notAfter: true,
  rate: true,
  tenant: true,
});
/** The most tenants that one key names. */
const MOST_NAMED = 100;
const MOST_KEYS = 1_000;

/**
 * A new key and its hash. A key is 256 random bits, so nobody can guess it and a plain SHA-256 is enough. A slow hash
 * such as bcrypt would only let wrong keys keep the server busy.
 */
export function createKey(): { readonly key: string; readonly hash: string } {
  const bytes = new Uint8Array(KEY_BYTES);
  realSystem.fill(bytes);
  const key = PREFIX + Buffer.from(bytes).toString("base64url");
  return { key, hash: hashKey(key) };
}

export function hashKey(key: string): string {
  return `sha256:${hash("sha256", key, "hex")}`;
}

/** The keys a server accepts. They can be replaced while it runs. */
export class Keyring {
  readonly #now: () => Instant;
  #keys: ReadonlyMap<string, Key> = new Map();

  constructor(keys: readonly KeyOptions[], { now }: { readonly now: () => Instant }) {
    this.#now = now;
    this.replace(keys);
  }

  get size(): number {
    return this.#keys.size;
  }

  /** Replaces all keys at once. Requests under way keep their identity. */
  replace(keys: readonly KeyOptions[]): void {
    this.#keys = new Map(checkKeys(keys, "keys").map((key) => [key.digest.toString("latin1"), key]));
  }

  /**
   * Finds the key of a token by its digest and compares digests in constant time. Timing could only reveal a digest, and
   * a digest does not lead to a token of 256 random bits.
   */
  find(token: string): Identity | "unknown" | "expired" {
    if (!KEY.test(token)) return "unknown";
    return this.findByDigest(hash("sha256", token, "buffer").toString("latin1"));
  }

  /** Like `find`, by the SHA-256 of a key as Latin-1 text. A session stores this digest, not the key. */
  findByDigest(text: string): Identity | "unknown" | "expired" {
    const key = this.#keys.get(text);
    if (!key || !timingSafeEqual(key.digest, Buffer.from(text, "latin1"))) return "unknown";
    return key.notAfter !== null && this.#now() >= key.notAfter ? "expired" : key;
  }
}

export function checkKeys(keys: unknown, field: string): readonly Key[] {
  if (!Array.isArray(keys)) throw refuse("invalid_option", field, keys, "write a list of keys");
  if (keys.length > MOST_KEYS)
    throw refuse("invalid_limit", field, keys.length, `use at most ${MOST_KEYS} keys`);
  const seen = new Set<string>();
  return keys.map((key: unknown, index) => {
    const checked = checkKey(key, `${field}[${index}]`);
    const digest = checked.digest.toString("hex");
    if (seen.has(digest))
      throw refuse("invalid_option", `${field}[${index}].hash`, checked.name, "list each key once");
    seen.add(digest);
    return checked;
  });
}

function checkKey(key: unknown, field: string): Key {
  refuseUnknownKeys(key, field, FIELDS);
  const { name, role, hash: written, notAfter, rate, tenant } = key as Record<keyof KeyOptions, unknown>;
  if (typeof name !== "string" || !NAME.test(name))
    throw refuse("invalid_name", `${field}.name`, name, "use 1 to 64 of A-Z a-z 0-9 . _ @ -");
  if (typeof role !== "string" || !Object.hasOwn(ROLES, role))
    throw refuse("invalid_option", `${field}.role`, role, `use one of ${Object.keys(ROLES).join(", ")}`);
  if (typeof written !== "string" || !HASH.test(written)) throw notAHash(`${field}.hash`, written);
  if (rate !== undefined && (typeof rate !== "number" || !Number.isFinite(rate) || rate <= 0))
    throw refuse("invalid_limit", `${field}.rate`, rate, "use requests per second, more than 0");
  return {
    name,
    role: role as Role,
    rate: rate as number | undefined,
    ...(tenant !== undefined && { tenants: checkTenants(tenant, `${field}.tenant`) }),
    digest: Buffer.from(written.slice("sha256:".length), "hex"),
    notAfter: notAfter === undefined ? null : parseInstant(notAfter as InstantInput, `${field}.notAfter`),
  };
}

function checkTenants(tenant: unknown, field: string): readonly string[] | "*" {
  if (tenant === "*") return tenant;
  const names: readonly unknown[] = Array.isArray(tenant) ? tenant : [tenant];
  if (names.length === 0 || names.length > MOST_NAMED)
    throw refuse(
      "invalid_option",
      field,
      names.length,
      `name 1 to ${MOST_NAMED} tenants, or write "*" for all`,
    );
  return [...new Set(names.map((name) => checkTenantName(name, field)))];
}

/**
 * The tenant of a request: the only one of the key, or the one that the header chooses among those that the key may.
 * The header alone gives no right. The answer is the same for tenants that exist and for others.
 */
export function chooseTenant({ name, role, tenants }: Identity, asked: string | null): string | undefined {
  if (asked === null) {
    if (!Array.isArray(tenants)) return undefined;
    if (tenants.length === 1) return tenants[0];
    const message = `The key of ${name} is for several tenants; choose one with the header X-OJS-Tenant`;
    throw new HttpError(400, "invalid_request", message, { details: { field: "X-OJS-Tenant" } });
  }
  const tenant = checkTenantName(asked, "X-OJS-Tenant");
  if (Array.isArray(tenants) ? tenants.includes(tenant) : tenants === "*" || role === "admin") return tenant;
  throw new HttpError(403, "forbidden", `The key of ${name} may not work within this tenant`, {
    details: { field: "X-OJS-Tenant" },
  });
}

/** Somebody may write the key in place of its hash. The message must not repeat it. */
function notAHash(field: string, written: unknown): Error {
  const isKey = typeof written === "string" && written.startsWith(PREFIX);
  const shown = isKey ? "a key itself" : typeof written === "string" ? "(a string)" : written;
  return refuse("invalid_option", field, shown, 'write the hash that "curfew keys new" printed, sha256:…');
}

const CHALLENGE = { "WWW-Authenticate": 'Bearer realm="curfew"' };

/** The caller of a request, or a 401. Without keys every caller is an admin, and the server listens on loopback only. */
export function authenticate(keyring: Keyring | undefined, authorization: string | null): Identity {
  if (!keyring) return LOCAL;
  if (authorization === null) {
    throw new HttpError(401, "unauthorized", "Send a key: Authorization: Bearer curfew_…", {
      headers: CHALLENGE,
    });
  }
  const token = /^bearer +(\S+)$/i.exec(authorization)?.[1];
  const found = token === undefined ? "unknown" : keyring.find(token);
  if (typeof found === "object") return found;
  const message = found === "expired" ? "This key is no longer valid" : "This key is not known";
  throw new HttpError(401, "unauthorized", message, { headers: CHALLENGE });
}

const LOCAL: Identity = { name: "local", role: "admin", rate: undefined, by: "nobody" };

/** Turns the answer of the host's `authorize` into an identity. Null is a 401. */
export function identityOfHost(said: Role | Visitor | null): Identity {
  if (said === null) throw new HttpError(401, "unauthorized", "Log in to the application first");
  const { name, role, tenant } =
    typeof said === "string" ? { name: said, role: said, tenant: undefined } : said;
  if (typeof name !== "string" || !NAME.test(name))
    throw refuse("invalid_name", "authorize.name", name, "use 1 to 64 of A-Z a-z 0-9 . _ @ -");
  if (!Object.hasOwn(ROLES, role))
    throw refuse(
      "invalid_option",
      "authorize",
      role,
      `give one of ${Object.keys(ROLES).join(", ")}, or null`,
    );
  const tenants = tenant === undefined ? {} : { tenants: checkTenants(tenant, "authorize.tenant") };
  return { name, role, rate: undefined, by: "host", ...tenants };
}

export function authorize(identity: Identity, right: Right): void {
  if (ROLES[identity.role].includes(right)) return;
  const message = `The key of ${identity.name} has the role ${identity.role}, which may not ${right}`;
  throw new HttpError(403, "forbidden", message, { details: { role: identity.role, needs: right } });
}
