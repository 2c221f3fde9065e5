import { refuse } from "../../core/errors.ts";

export interface RedisAddress {
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  readonly username?: string;
  readonly password?: string;
  readonly database: number;
  readonly tls: boolean;
  /** The name of the master that Sentinels know; the hosts are the Sentinels then. */
  readonly sentinel?: string;
  readonly options: ReadonlyMap<string, string>;
}

const ADDRESS = /^(redis|valkey)(s?):\/\/(?:([^@]*)@)?([^/?]+)(?:\/(\d*))?(?:\?(.*))?$/s;
const PORT = 6_379;
const SENTINEL_PORT = 26_379;
const QUERY_KEYS = ["durability", "homes", "prefix", "sentinel"];

/** `redis://user:password@host:port,host:port/0?durability=replicated`. */
export function parseAddress(address: string, shown: string): RedisAddress {
  const wrong = (fix: string, caught?: { cause: unknown }) =>
    refuse("invalid_option", "store", shown, fix, caught);
  const [, , secure, user, hosts = "", database = "", query = ""] = ADDRESS.exec(address) ?? [];
  if (hosts === "") throw wrong('write "redis://host:port", or "redis://host:port,host:port" for a cluster');
  const options = new Map(new URLSearchParams(query));
  for (const key of options.keys())
    if (!QUERY_KEYS.includes(key)) throw wrong(`"${key}" is not known; use ${QUERY_KEYS.join(", ")}`);
  const sentinel = options.get("sentinel");
  const [username, password] = credentials(user, wrong);
  return {
    hosts: hosts.split(",").map((text) => hostOf(text, sentinel ? SENTINEL_PORT : PORT, wrong)),
    ...(username && { username }),
    ...(password && { password }),
    database: database === "" ? 0 : Number(database),
    tls: secure === "s",
    ...(sentinel && { sentinel }),
    options,
  };
}

function credentials(
  user: string | undefined,
  wrong: (fix: string, caught: { cause: unknown }) => Error,
): [string | undefined, string | undefined] {
  if (user === undefined) return [undefined, undefined];
  const colon = user.indexOf(":");
  const parts = colon === -1 ? [user] : [user.slice(0, colon), user.slice(colon + 1)];
  try {
    const [name, password] = parts.map(decodeURIComponent);
    return [name, password];
  } catch (error) {
    throw wrong('the user or the password has a "%" that encodes nothing; write %25 for a "%"', {
      cause: error,
    });
  }
}

function hostOf(
  text: string,
  ordinary: number,
  wrong: (fix: string) => Error,
): { host: string; port: number } {
  const [, host, port] = /^(\[[^\]]+\]|[^:]+)(?::(\d+))?$/.exec(text) ?? [];
  const number = port === undefined ? ordinary : Number(port);
  if (host === undefined || number < 1 || number > 65_535)
    throw wrong(`"${text}" is not host:port with a port from 1 to 65535`);
  return { host: host.replace(/^\[|\]$/g, ""), port: number };
}
