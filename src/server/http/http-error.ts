import type { Json } from "../../core/schema.ts";

/** Headers as a plain object: the Node adapter writes these as they are, without building a Headers object first. */
export type PlainHeaders = Record<string, string>;

interface HttpErrorDetail {
  readonly headers?: PlainHeaders;
  readonly details?: Json;
  readonly hint?: string;
  readonly type?: string;
  /** Whether the same request may succeed later. */
  readonly retryable?: boolean;
  /** For the log alone. */
  readonly cause?: unknown;
}

/**
 * A refused request. Its message goes to the client. Any other error that a request throws becomes a 500, which shows only
 * the request's id.
 */
export class HttpError extends Error {
  override readonly name = "HttpError";
  readonly status: number;
  readonly code: string;
  readonly more: HttpErrorDetail;

  constructor(status: number, code: string, message: string, more: HttpErrorDetail = {}) {
    super(message, "cause" in more ? { cause: more.cause } : undefined);
    this.status = status;
    this.code = code;
    this.more = more;
  }
}

/** Refuses a request because of one field. `problem` follows the name of the field, and says what to do. */
export function refusedField(field: string, problem: string): HttpError {
  return new HttpError(400, "invalid_request", `${field}: ${problem}`, { details: { field } });
}
