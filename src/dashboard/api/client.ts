import type { Page } from "../../ojs/replies/wire-replies.ts";
import { base } from "../state/router.ts";

/** A refusal or a failure, in the server's own words where it said any. Errors are data here: nothing is thrown. */
export interface ApiError {
  /** 0: no answer came. */
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly requestId: string | null;
}

export type Result<Value> =
  | { readonly ok: true; readonly data: Value }
  | { readonly ok: false; readonly error: ApiError };

export type Query = Readonly<Record<string, string | number | boolean | null | undefined>>;

interface CallOptions {
  readonly query?: Query;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
  /** Why it is done, for the audit. */
  readonly reason?: string | undefined;
}

/** The interface is served under the dashboard's own path, so the login's cookie goes nowhere else. */
const API = `${base}ojs/v1`;

export function apiUrl(path: string, query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== null && value !== undefined && value !== "") parameters.set(name, String(value));
  const text = parameters.toString();
  return `${API}${path}${text === "" ? "" : `?${text}`}`;
}

/** Called when the server no longer knows who asks. */
let whenRefused = () => {};
export function onRefused(call: () => void): void {
  whenRefused = call;
}

/** The age in seconds that reads accept while `acceptAge` runs. */
let age: number | null = null;

/**
 * Starts reads whose replies may be this old, in seconds. The server then computes a reply once for all open tabs. Only what
 * the call asks for at once is meant.
 */
export function acceptAge<Started>(seconds: number, start: () => Started): Started {
  age = seconds;
  try {
    return start();
  } finally {
    age = null;
  }
}

async function call<Value>(
  method: string,
  path: string,
  { query, body, signal, reason }: CallOptions = {},
): Promise<Result<Value>> {
  let response: Response;
  let text: string;
  try {
    response = await fetch(apiUrl(path, { ...query, ...reasonInQuery(method, reason) }), {
      method,
      credentials: "same-origin",
      headers: {
        Accept: "application/json",
        "X-Curfew-Dashboard": "1",
        ...(age !== null && method === "GET" && { "Cache-Control": `max-age=${age}` }),
        ...(body !== undefined && { "Content-Type": "application/json" }),
        // Some deletions read no body.
        ...(method === "DELETE" && reason && isAscii(reason) && { "X-Audit-Reason": reason }),
      },
      ...(body !== undefined && { body: JSON.stringify(withReason(body, reason)) }),
      ...(signal && { signal }),
    });
    text = await response.text();
  } catch {
    return { ok: false, error: noAnswer(signal) };
  }
  if (response.status === 401) whenRefused();
  const parsed = parse(text);
  return response.ok
    ? { ok: true, data: parsed as Value }
    : { ok: false, error: errorOf(response, parsed as ErrorBody | null) };
}

const isAscii = (text: string) => /^[\x20-\x7e]*$/.test(text);

/** A header takes only ASCII, so the reason of a deletion stands in the query where it has more than that. */
const reasonInQuery = (method: string, reason: string | undefined): Query =>
  method === "DELETE" && reason && !isAscii(reason) ? { reason } : {};

function withReason(body: unknown, reason: string | undefined): unknown {
  return reason ? { ...(body as object), reason } : body;
}

function noAnswer(signal: AbortSignal | undefined): ApiError {
  const message = signal?.aborted ? "Stopped." : "The server did not answer.";
  return { status: 0, code: signal?.aborted ? "aborted" : "no_answer", message, requestId: null };
}

interface ErrorBody {
  readonly error?: { readonly code?: string; readonly message?: string; readonly request_id?: string };
}

function errorOf(response: Response, body: ErrorBody | null): ApiError {
  const { code = "error", message, request_id } = body?.error ?? {};
  return {
    status: response.status,
    code,
    message: message ?? `The server answered ${response.status} ${response.statusText}.`,
    requestId: request_id ?? response.headers.get("x-request-id"),
  };
}

function parse(text: string): unknown {
  try {
    return text === "" ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

export const api = {
  get: <Value>(path: string, query?: Query, signal?: AbortSignal) =>
    call<Value>("GET", path, { ...(query && { query }), ...(signal && { signal }) }),
  post: <Value>(path: string, body: unknown = {}, reason?: string) =>
    call<Value>("POST", path, { body, reason }),
  put: <Value>(path: string, body: unknown, reason?: string) => call<Value>("PUT", path, { body, reason }),
  patch: <Value>(path: string, body: unknown, reason?: string) =>
    call<Value>("PATCH", path, { body, reason }),
  delete: <Value>(path: string, body?: unknown, reason?: string) =>
    call<Value>("DELETE", path, { ...(body !== undefined && { body }), reason }),
};

/** A part of a path: names may hold anything. */
export const part = (text: string): string => encodeURIComponent(text);

export type Cursor = string | null | undefined;
export const PER_PAGE = 50;

/** Reads a list a page at a time. */
export const listAt =
  <Row>(path: string) =>
  (cursor: Cursor, signal?: AbortSignal) =>
    api.get<Page<Row>>(path, { cursor, per_page: PER_PAGE }, signal);
