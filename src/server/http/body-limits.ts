import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { refuseInexact } from "./exact-numbers.ts";
import { HttpError } from "./http-error.ts";

export interface LimitOptions {
  /** The most bytes of a request's body. Default 4 MiB. */
  readonly body?: number;
  /** How deep a body may be nested. Default 100. */
  readonly depth?: number;
  /** How many keys all objects of a body may have together. Twice as many lists and objects are allowed. Default 50,000. */
  readonly keys?: number;
  /** Requests per second and caller, where the caller's key does not say otherwise. Default: no limit. */
  readonly rate?: number;
}

export interface Limits {
  readonly body: number;
  readonly depth: number;
  readonly keys: number;
  readonly rate: number | undefined;
}

const DEFAULTS = { body: 4 * 1024 * 1024, depth: 100, keys: 50_000 } as const;
/** Payload checks are recursive: a deeper body could exhaust the stack. */
const DEEPEST = 1_000;
const LARGEST = 256 * 1024 * 1024;

export function checkLimits(options: LimitOptions = {}): Limits {
  refuseUnknownKeys(options, "limits", ["body", "depth", "keys", "rate"]);
  const { rate } = options;
  if (rate !== undefined && !(Number.isFinite(rate) && rate > 0))
    throw refuse("invalid_limit", "limits.rate", rate, "use requests per second, more than 0");
  return {
    body: wholeNumber("body", options.body ?? DEFAULTS.body, LARGEST),
    depth: wholeNumber("depth", options.depth ?? DEFAULTS.depth, DEEPEST),
    keys: wholeNumber("keys", options.keys ?? DEFAULTS.keys, Number.MAX_SAFE_INTEGER),
    rate,
  };
}

function wholeNumber(name: string, value: number, most: number): number {
  if (Number.isInteger(value) && value >= 1 && value <= most) return value;
  throw refuse("invalid_limit", `limits.${name}`, value, `use a whole number from 1 to ${most}`);
}

/** The parts of Node's request that the body reader uses. */
export type Incoming = Pick<IncomingMessage, "on" | "pause" | "readableDidRead" | "readableEnded">;

/**
 * The text of a body, at most `limit` bytes. A Content-Length above the limit is refused before a byte is read. Bytes are
 * counted as they arrive too, because a proxy may send a wrong length.
 */
export async function readBody(
  request: { readonly headers: { get(name: string): string | null }; readonly body?: ReadableStream | null },
  limit: number,
  incoming?: Incoming,
): Promise<string> {
  const named = request.headers.get("content-length");
  if (named !== null && !(Number(named) <= limit)) throw tooLarge(limit);
  if (named === "0") return "";
  const chunks = incoming
    ? await readIncoming(incoming, limit)
    : await readStream(request.body ?? null, limit);
  const [first] = chunks;
  if (first === undefined) return "";
  return decode(chunks.length === 1 ? first : Buffer.concat(chunks));
}

/** Reads from Node directly: web streams would add a third to the time of a small request. */
function readIncoming(incoming: Incoming, limit: number): Promise<Uint8Array[]> {
  if (incoming.readableDidRead)
    throw new Error("the body was read before: mount the server above body parsers");
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    let size = 0;
    incoming
      .on("data", (chunk: Uint8Array) => {
        size += chunk.byteLength;
        if (size <= limit) chunks.push(chunk);
        else {
          incoming.pause();
          reject(tooLarge(limit));
        }
      })
      .on("end", () => resolve(chunks))
      .on("error", reject)
      // The client is gone, but the request must still end.
      .on("close", () => {
        if (!incoming.readableEnded)
          reject(new HttpError(400, "invalid_request", "The connection ended before the body did"));
      });
  });
}

async function readStream(body: ReadableStream | null, limit: number): Promise<Uint8Array[]> {
  if (body === null) return [];
  const reader = body.getReader() as ReadableStreamDefaultReader<Uint8Array>;
  const chunks: Uint8Array[] = [];
  for (let size = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return chunks;
    size += value.byteLength;
    chunks.push(value);
    if (size <= limit) continue;
    // Do not wait for the client: the refusal is already on its way.
    reader.cancel().catch(() => {});
    throw tooLarge(limit);
  }
}

/** Refuses bytes that are not UTF-8: a lenient decoder would store another text than was sent. */
function decode(bytes: Uint8Array): string {
  if (!isUtf8(bytes)) throw new HttpError(400, "invalid_payload", "The body is not UTF-8 text");
  const text = bufferOf(bytes).toString("utf8");
  // A byte order mark is not part of the text.
  return text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text;
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

const BYTE_ORDER_MARK = 0xfeff;

function tooLarge(limit: number): HttpError {
  const message = `The body is larger than ${limit} bytes: store the data elsewhere and send its address`;
  return new HttpError(413, "payload_too_large", message, { details: { limit } });
}

const QUOTE = 34;
const COLON = 58;
const BACKSLASH = 92;
const OPEN_LIST = 91;
const CLOSE_LIST = 93;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;

/**
 * Counts depth and keys of a JSON text before it is parsed, in one pass and without recursion. Text that is not
 * JSON may be miscounted: the parser refuses it next.
 */
export function checkShape(text: string, { depth, keys }: Pick<Limits, "depth" | "keys">): void {
  let level = 0;
  let named = 0;
  let opened = 0;
  const lists = Math.max(1_000, 2 * keys);
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(text, at + 1);
        break;
      case OPEN_LIST:
      case OPEN_OBJECT:
        if (++level > depth) throw invalid(`The body is nested deeper than ${depth} levels`, { depth });
        if (++opened > lists) throw invalid(`The body has more than ${lists} lists and objects`, { lists });
        break;
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        level -= 1;
        break;
      case COLON:
        if (++named > keys) throw invalid(`The body has more than ${keys} keys`, { keys });
    }
  }
}

/** The index of the quote that ends a string, or the length of the text if none does. */
function endOfString(text: string, from: number): number {
  let start = from;
  for (;;) {
    const quote = text.indexOf('"', start);
    if (quote === -1) return text.length;
    let backslashes = 0;
    while (quote - backslashes > start && text.charCodeAt(quote - backslashes - 1) === BACKSLASH)
      backslashes += 1;
    if (backslashes % 2 === 0) return quote;
    start = quote + 1;
  }
}

function invalid(message: string, details: { [limit: string]: number }): HttpError {
  return new HttpError(400, "invalid_payload", message, { details });
}

/** Fields that hold a user's document. All other objects of a body are parts of the interface. */
const DOCUMENTS: ReadonlySet<string> = new Set(["args", "result", "state", "checkpoint", "data", "details"]);
/** The most keys of one object outside of documents: schemas look at each of them. */
const MOST_FIELDS = 1_000;

/** Refuses objects with more fields than any request needs, such as meta, labels and unknown fields. */
export function refuseWide(value: unknown, path = ""): void {
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    for (const item of value) refuseWide(item, path);
    return;
  }
  let count = 0;
  for (const name in value) {
    if (++count > MOST_FIELDS)
      throw invalid(
        `${path || "body"}: it has more than ${MOST_FIELDS} keys; send fewer, or a list in args`,
        {
          fields: MOST_FIELDS,
        },
      );
    if (!DOCUMENTS.has(name))
      refuseWide(
        (value as Record<string, unknown>)[name],
        path === "" ? name : `${path}.${name}`.slice(0, 200),
      );
  }
}

/** The value of a JSON text within the limits, or a refusal. */
export function parseBody(text: string, limits: Limits): unknown {
  // A shorter text cannot nest deeper or hold more keys.
  if (text.length > limits.depth || text.length > limits.keys) checkShape(text, limits);
  try {
    const value: unknown = JSON.parse(text);
    refuseInexact(text);
    return value;
  } catch (error) {
    if (error instanceof HttpError) throw error;
    const message = `body: it is not JSON (${(error as Error).message}); send one JSON object in UTF-8`;
    throw new HttpError(400, "invalid_payload", message, { cause: error, details: { field: "body" } });
  }
}

/**
 * Token buckets: each subject may send `rate` requests per second on average, and one second's worth at once. A bucket is
 * stored as the instant at which it is full again. Beyond `most` subjects, the one that was silent longest is dropped.
 */
export class RateLimiter {
  readonly #fullAt = new Map<string, number>();
  readonly #most: number;

  constructor(most = 10_000) {
    this.#most = most;
  }

  get size(): number {
    return this.#fullAt.size;
  }

  /** Tokens that are left, and the milliseconds until all are free again. */
  left(subject: string, rate: number, now: number): { readonly tokens: number; readonly fullIn: number } {
    const fullIn = Math.max(0, (this.#fullAt.get(subject) ?? now) - now);
    return { tokens: Math.max(0, Math.floor(Math.max(1, rate) - (fullIn * rate) / 1_000 + 1e-6)), fullIn };
  }

  /** Takes one token. Returns 0, or the milliseconds until one is free. */
  take(subject: string, rate: number, now: number): number {
    const interval = 1_000 / rate;
    const fullAt = Math.max(now, this.#fullAt.get(subject) ?? now);
    const emptyFrom = now + (Math.max(1, rate) - 1) * interval;
    this.#fullAt.delete(subject);
    this.#fullAt.set(subject, fullAt > emptyFrom ? fullAt : fullAt + interval);
    if (this.#fullAt.size > this.#most) this.#forgetOldest();
    return fullAt > emptyFrom ? Math.ceil(fullAt - emptyFrom) : 0;
  }

  #forgetOldest(): void {
    for (const subject of this.#fullAt.keys()) {
      this.#fullAt.delete(subject);
      return;
    }
  }
}

export function tooManyRequests(wait: number): HttpError {
  return new HttpError(429, "rate_limited", `Too many requests with this key: try again in ${wait} ms`, {
    headers: { "Retry-After": String(Math.max(1, Math.ceil(wait / 1_000))) },
    details: { retry_after_ms: wait },
    retryable: true,
  });
}
