import { CurfewError, refuse, refuseUnknownKeys } from "../core/errors.ts";
import { keysOf } from "../core/option-keys.ts";
import { DOCUMENT_LIMIT } from "../core/schema.ts";
import { type Duration, parseDuration } from "../core/time.ts";
import type { EncryptionOptions } from "../engine/runtime/aes-sealing.ts";
import { consoleLogger } from "../engine/runtime/console-logger.ts";
import { realSystem } from "../engine/runtime/real-system.ts";
import { BASE } from "../ojs/paths.ts";
import { guardedLogger, type Logger } from "../ports/log.ts";
import type { System } from "../ports/system.ts";
import type { Fetch, ServerWarning } from "./transport.ts";

export interface ClientOptions {
  /** The address of the server, such as `"https://jobs.example.com"`, with the path where it is mounted. */
  readonly url: string;
  /** One of the server's keys. No log and no error shows it. */
  readonly key?: string;
  /** A replacement for Node's `fetch`. */
  readonly fetch?: Fetch;
  readonly logger?: Logger;
  /** Called once for each different warning of the server. The logger gets it too. */
  readonly onWarning?: (warning: ServerWarning) => void;
  /** How long one request may take. Default 10 s. */
  readonly timeout?: Duration;
  /** The most tries of a request while the server does not answer or sends 429 or 503. Default 5. */
  readonly tries?: number;
  /** The most bytes of a reply. Default 64 MB. */
  readonly replyLimit?: number;
  /** The most bytes of a payload, result, checkpoint or progress note. Default 1 MB. */
  readonly documentLimit?: number;
  /** Encrypts payloads, results, checkpoints and notes of progress before they are sent. The server needs no key. */
  readonly encryption?: EncryptionOptions;
  /** Clock, timers and randomness; tests hand in virtual ones. */
  readonly system?: System;
}

export interface CheckedOptions {
  readonly url: string;
  readonly key: string | undefined;
  readonly fetch: Fetch;
  readonly logger: Logger;
  readonly system: System;
  readonly timeout: number;
  readonly tries: number;
  readonly replyLimit: number;
  readonly documentLimit: number;
  readonly encryption: EncryptionOptions | undefined;
  readonly onWarning: ((warning: ServerWarning) => void) | undefined;
}

const KEYS = keysOf<ClientOptions>({
  url: true,
  key: true,
  fetch: true,
  logger: true,
  onWarning: true,
  timeout: true,
  tries: true,
  replyLimit: true,
  documentLimit: true,
  encryption: true,
  system: true,
});
const TIMEOUT = 10_000;
const TRIES = 5;
const REPLY_LIMIT = 64_000_000;
const MOST_TRIES = 100;

export function checkOptions(options: ClientOptions): CheckedOptions {
  refuseUnknownKeys(options, "client", KEYS);
  const { key, logger = consoleLogger(), system = realSystem } = options;
  if (options.fetch !== undefined && typeof options.fetch !== "function")
    throw refuse("invalid_option", "client.fetch", options.fetch, "pass a function like fetch");
  const url = checkUrl(options.url);
  if (key !== undefined) checkKey(key);
  if (key !== undefined && url.protocol === "http:" && !isLoopback(url.hostname))
    logger.warn({ host: url.host }, "the key is sent unencrypted; use https for other machines");
  return {
    url: url.origin + url.pathname.replace(/\/+$/, "") + BASE,
    key,
    fetch: options.fetch ?? ((address, init) => fetch(address, init)),
    logger: guardedLogger(logger),
    system,
    onWarning: options.onWarning,
    timeout: options.timeout === undefined ? TIMEOUT : parseDuration(options.timeout, "client.timeout"),
    tries: wholeNumber("tries", options.tries ?? TRIES, MOST_TRIES),
    replyLimit: wholeNumber("replyLimit", options.replyLimit ?? REPLY_LIMIT, 2 ** 30),
    encryption: options.encryption,
    documentLimit: wholeNumber("documentLimit", options.documentLimit ?? DOCUMENT_LIMIT, 2 ** 30),
  };
}

function checkUrl(text: string): URL {
  const url = typeof text === "string" && URL.canParse(text) ? new URL(text) : undefined;
  if (!url || (url.protocol !== "http:" && url.protocol !== "https:"))
    throw refuse(
      "invalid_option",
      "client.url",
      text,
      'write the address of a server, such as "http://localhost:8080"',
    );
  // The URL holds a secret, so the message does not show it.
  if (url.username !== "" || url.password !== "")
    throw new CurfewError(
      "invalid_option",
      "client.url: it has a user or password; remove them and pass the key as `key`",
      {
        field: "client.url",
      },
    );
  if (url.search !== "" || url.hash !== "")
    throw refuse("invalid_option", "client.url", text, "remove the query and the fragment");
  return url;
}

/** `fetch` would quote a key with a line break in its error. */
function checkKey(key: string): void {
  if (typeof key === "string" && /^[\x21-\x7e]{1,4096}$/.test(key)) return;
  throw new CurfewError(
    "invalid_option",
    "client.key: not a valid key: it has a space, a line break or a non-ASCII character; copy it as `curfew keys new` printed it",
    {
      field: "client.key",
    },
  );
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127(\.\d+){3}$/.test(host);
}

function wholeNumber(name: string, value: number, most: number): number {
  if (Number.isInteger(value) && value >= 1 && value <= most) return value;
  throw refuse("invalid_limit", `client.${name}`, value, `use a whole number from 1 to ${most}`);
}
