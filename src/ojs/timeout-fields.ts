import { decodeHeaders, encodeHeaders, type TimeoutHeaders } from "../core/timeout/timeout-headers.ts";
import type { When } from "../core/timeout/when.ts";

/** A timeout as a client sends it: its headers are one text, because they may hold bytes. */
export interface SentTimeout {
  readonly id: string;
  readonly destination: string;
  readonly dueAt: When;
  readonly payload?: never;
  readonly headers?: string;
  readonly key?: string;
}

/** A stored timeout for the wire. */
export function writeTimeout<Timeout extends { readonly headers: TimeoutHeaders | null }>(
  timeout: Timeout,
): Omit<Timeout, "headers"> & { readonly headers: string | null } {
  const { headers } = timeout;
  return { ...timeout, headers: headers && encodeHeaders(headers) };
}

export function readTimeout<Timeout>(sent: unknown): Timeout {
  const { headers, ...rest } = sent as { readonly headers: string | null };
  return { ...rest, headers: headers === null ? null : decodeHeaders(headers) } as Timeout;
}
