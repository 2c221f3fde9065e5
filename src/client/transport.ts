import { CurfewError, show } from "../core/errors.ts";
import { backoff } from "../core/pace.ts";
import { callSafely } from "../core/user-values.ts";
import type { Logger } from "../ports/log.ts";
import type { System } from "../ports/system.ts";

/** The part of `fetch` that the client uses, so that another HTTP library fits. */
export type Fetch = (
  url: string,
  init: {
    readonly method: string;
    readonly headers: Record<string, string>;
    readonly body?: string;
    readonly signal: AbortSignal;
    readonly redirect: "manual";
  },
) => Promise<Response>;

export interface Request {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  /** JSON text. */
  readonly body?: string;
  /** The call, for messages. */
  readonly what: string;
  /** The time limit, if it differs from the client's. */
  readonly timeout?: number;
  /** Repeating it could do it twice: it is not sent again once it may have arrived. */
  readonly isOnce?: true;
}

export interface Reply {
  readonly status: number;
  readonly body: unknown;
  /** The server answered between these monotonic instants. */
  readonly sentAt: number;
  readonly receivedAt: number;
  /** The wait that the server asks for, in milliseconds. */
  readonly retryAfter: number | undefined;
  /** An earlier try got no answer, so this reply may show the effect of that try. */
  readonly isRepeated: boolean;
}

interface TransportOptions {
  readonly url: string;
  readonly key: string | undefined;
  readonly fetch: Fetch;
  readonly system: System;
  readonly logger: Logger;
  /** How long one request may take. */
  readonly timeout: number;
  readonly tries: number;
  /** The most bytes of a reply. */
  readonly replyLimit: number;
  readonly onWarning?: ((warning: ServerWarning) => void) | undefined;
}

/** Something that the server found odd in a request and took all the same, such as a timeout with a typo in its name. */
export interface ServerWarning {
  /** The call of the client: `enqueue`. */
  readonly call: string;
  /** Names the field and what was probably meant. */
  readonly message: string;
}

const BACKOFF = { first: 100, factor: 2, most: 5_000 };
const LONGEST_RETRY_AFTER = 30_000;
const MOST_FAULTS = 10;
/** Different warnings that are logged. */
const MOST_WARNINGS = 100;
/** The same request may succeed later. */
export const LATER: ReadonlySet<number> = new Set([429, 500, 502, 503, 504]);

/** With these codes the request was not sent, so it had no effect. */
const UNSENT: ReadonlySet<unknown> = new Set([
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** No readable answer came. The effect is unknown, unless the request was not sent. */
class NoAnswer extends Error {
  override readonly name = "NoAnswer";
  readonly isUnsent: boolean;

  constructor(message: string, options: { readonly cause?: unknown; readonly isUnsent?: boolean } = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.isUnsent = options.isUnsent ?? false;
  }
}

/** The reply exceeded the limit. Asking again would not help. */
export class ReplyTooLarge extends Error {
  override readonly name = "ReplyTooLarge";
}

/**
 * Requests to one server, each with a limit of time, size and tries. The key goes into a header here and is shown nowhere
 * else.
 */
export class Transport {
  readonly #options: TransportOptions;
  readonly #headers: Record<string, string>;
  readonly #closed = new AbortController();
  readonly #warned = new Set<string>();

  constructor(options: TransportOptions) {
    this.#options = options;
    this.#headers = {
      accept: "application/openjobspec+json",
      ...(options.key !== undefined && { authorization: `Bearer ${options.key}` }),
    };
  }

  get isClosed(): boolean {
    return this.#closed.signal.aborted;
  }

  /** Aborts requests under way. Later ones fail at once. */
  close(): void {
    this.#closed.abort();
  }

  /** Repeats a request until it has a final answer or no tries are left. */
  async ask(request: Request): Promise<Reply> {
    let isRepeated = false;
    for (let tries = 1; ; tries++) {
      let reply: Reply | undefined;
      let failure: unknown;
      try {
        reply = await this.once(request, isRepeated);
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
        failure = error;
        isRepeated ||= !error.isUnsent;
      }
      if (reply && isFinal(reply)) return reply;
      // A failed request may still have had its effect.
      isRepeated ||= reply !== undefined && reply.status !== 429;
      const isUncertain = request.isOnce === true && isRepeated;
      if (tries >= this.#options.tries || this.isClosed || isUncertain)
        throw this.#failed(request, reply, failure, tries, isUncertain);
      await this.rest(tries, reply?.retryAfter, true);
    }
  }

  /**
   * Repeats a request until it has an answer, so that a restart of the server loses no report. Null once `isWanted` is
   * false or the client is closed. `wasSent`: an earlier request without an answer held the same report.
   */
  async insist(request: Request, isWanted: () => boolean, wasSent = false): Promise<Reply | null> {
    let isRepeated = wasSent;
    let faults = 0;
    for (let tries = 1; ; tries++) {
      let reply: Reply | undefined;
      try {
        reply = await this.once(request, isRepeated);
        // A request that always fails must not block the others.
        if (reply.status === 500 && ++faults >= MOST_FAULTS) return reply;
        // A key may be refused while it is replaced. Dropping the report would lose the attempt's work.
        if (!LATER.has(reply.status) && reply.status !== 401 && reply.status !== 403) return reply;
        isRepeated ||= reply.status >= 500;
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
        isRepeated ||= !error.isUnsent;
      }
      if (this.isClosed || !isWanted()) return null;
      if (tries === 1)
        this.#options.logger.debug({ what: request.what }, "the server does not answer; trying again");
      // No keepAlive: the open worker keeps the process alive, and a closed one must not.
      await this.rest(tries, reply?.retryAfter, false);
      if (this.isClosed || !isWanted()) return null;
    }
  }

  /** Waits before the next try: with backoff and jitter, at least as long as the server asked for. */
  rest(tries: number, retryAfter: number | undefined, keepAlive: boolean): Promise<void> {
    const { system } = this.#options;
    const delay = Math.max(backoff(tries, BACKOFF) * (0.5 + system.random()), retryAfter ?? 0);
    return new Promise((resolve) => {
      const { signal } = this.#closed;
      const end = () => {
        timer.cancel();
        signal.removeEventListener("abort", end);
        resolve();
      };
      const timer = system.after(delay, end, { keepAlive });
      if (signal.aborted) end();
      else signal.addEventListener("abort", end);
    });
  }

  async once(request: Request, isRepeated = false): Promise<Reply> {
    const { system, timeout, fetch, url } = this.#options;
    const limit = request.timeout ?? timeout;
    const controller = new AbortController();
    const abort = () => controller.abort();
    const timer = system.after(limit, abort);
    this.#closed.signal.addEventListener("abort", abort);
    if (this.isClosed) abort();
    const sentAt = system.monotonic();
    // A user's `fetch` may ignore its signal; the time limit still holds.
    const cut = new Promise<never>((_, reject) => {
      const end = () =>
        reject(new NoAnswer(this.isClosed ? "the client is closed" : `no answer within ${limit} ms`));
      if (controller.signal.aborted) end();
      else controller.signal.addEventListener("abort", end);
    });
    cut.catch(() => {});
    try {
      const asked = fetch(url + request.path, {
        method: request.method,
        headers:
          request.body === undefined
            ? this.#headers
            : { ...this.#headers, "content-type": "application/openjobspec+json" },
        ...(request.body !== undefined && { body: request.body }),
        signal: controller.signal,
        redirect: "manual",
      });
      const response = await Promise.race([asked, cut]);
      const text = await Promise.race([this.#read(response), cut]);
      const receivedAt = system.monotonic();
      this.#warn(request, response.headers.get("ojs-warning"));
      return { ...this.#parse(response, text), sentAt, receivedAt, isRepeated };
    } catch (error) {
      if (error instanceof NoAnswer || error instanceof ReplyTooLarge) throw error;
      const code = codeOf(error);
      throw new NoAnswer(describe(error, code), { cause: error, isUnsent: UNSENT.has(code) });
    } finally {
      timer.cancel();
      this.#closed.signal.removeEventListener("abort", abort);
      controller.abort();
    }
  }

  /** The server warns about fields that have no effect, such as a timeout with a typo. Each text is logged once. */
  #warn({ what }: Request, warning: string | null): void {
    if (warning === null || this.#warned.has(warning) || this.#warned.size >= MOST_WARNINGS) return;
    this.#warned.add(warning);
    const text = warning.slice(0, 1_000);
    this.#options.logger.warn({ what, warning: text }, "the server warns about a request");
    callSafely(
      () => this.#options.onWarning?.({ call: what, message: text }),
      (error) => this.#options.logger.error({ error }, "onWarning of the client threw"),
    );
  }

  /** The text of a reply, counted while it arrives. */
  async #read(response: Response): Promise<string> {
    const { replyLimit } = this.#options;
    const tooLarge = () => new ReplyTooLarge(`a reply of more than ${replyLimit} bytes was not read`);
    if (Number(response.headers.get("content-length") ?? 0) > replyLimit) throw tooLarge();
    if (!response.body) return "";
    const decoder = new TextDecoder();
    let text = "";
    let size = 0;
    for await (const chunk of response.body) {
      size += chunk.length;
      if (size > replyLimit) throw tooLarge();
      text += decoder.decode(chunk, { stream: true });
    }
    return text + decoder.decode();
  }

  #parse(response: Response, text: string): Pick<Reply, "status" | "body" | "retryAfter"> {
    const { status } = response;
    const after = Number(response.headers.get("retry-after") ?? Number.NaN) * 1_000;
    const retryAfter = after >= 0 ? Math.min(after, LONGEST_RETRY_AFTER) : undefined;
    if (text === "") return { status, body: undefined, retryAfter };
    try {
      return { status, body: JSON.parse(text), retryAfter };
    } catch (cause) {
      // A proxy's reply may not be JSON. Its status still says whether to retry.
      if (status >= 300) return { status, body: undefined, retryAfter };
      throw new NoAnswer(`the reply is not JSON: ${show(text.slice(0, 80))}`, { cause });
    }
  }

  #failed(
    request: Request,
    reply: Reply | undefined,
    failure: unknown,
    tries: number,
    isUncertain: boolean,
  ): CurfewError {
    if (this.isClosed) return new CurfewError("closed", `${request.what}: the client is closed`);
    const because = failure instanceof Error ? failure.message : reply ? saidBy(reply) : "no answer";
    const end = isUncertain
      ? "; it may or may not have been done: look before you repeat it"
      : ` (tried ${tries} times)`;
    return new CurfewError("server_failed", `${request.what}: ${because}${end}`, {
      ...(failure !== undefined && { cause: failure }),
    });
  }
}

/** Whether the caller gets this reply. A full queue is the caller's to handle, as on an engine. */
function isFinal(reply: Reply): boolean {
  return !LATER.has(reply.status) || refusalOf(reply).code === "QUEUE_FULL";
}

/** The code of a network error; `fetch` hides it in the cause. */
function codeOf(error: unknown): string | undefined {
  let at = error;
  for (let depth = 0; depth < 4 && at instanceof Error; depth++) {
    if ("code" in at && typeof at.code === "string" && at.code !== "") return at.code;
    at = at.cause;
  }
  return undefined;
}

function describe(error: unknown, code: string | undefined): string {
  const because = code ?? (error instanceof Error ? error.message.slice(0, 200) : show(error));
  return `the server cannot be reached (${because})`;
}

interface Refusal {
  readonly code?: unknown;
  readonly message?: unknown;
  readonly details?: unknown;
}

/** The error object of a reply, or an empty one. */
export function refusalOf(reply: Reply): Refusal {
  const { body } = reply;
  if (typeof body !== "object" || body === null || !("error" in body)) return {};
  const { error } = body;
  return typeof error === "object" && error !== null ? error : {};
}

export function saidBy(reply: Reply): string {
  const { message } = refusalOf(reply);
  return `the server answered ${reply.status}${typeof message === "string" ? `: ${message.slice(0, 1_000)}` : ""}`;
}

/** The error that the caller gets for a refused request. */
export function refused(what: string, reply: Reply): CurfewError {
  if (reply.status === 404) return new CurfewError("not_found", `${what}: ${saidBy(reply)}`);
  if (reply.status === 409) return new CurfewError("invalid_state", `${what}: ${saidBy(reply)}`);
  const fix =
    reply.status === 401
      ? "; pass openClient a key that the server knows"
      : reply.status === 403
        ? "; use a key whose role allows it"
        : "";
  return new CurfewError("server_refused", `${what}: ${saidBy(reply)}${fix}`);
}
