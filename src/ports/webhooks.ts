import type { JournalEvent } from "../core/event/journal-event.ts";
import type { Instant } from "../core/time.ts";
import type { AllowList } from "../core/webhook/endpoint.ts";

/** One call to an endpoint. */
export interface WebhookCall {
  readonly url: string;
  /** The id of the subscription. */
  readonly subscription: string;
  /** The same in all calls of a delivery, so that a receiver can tell repeated ones. */
  readonly delivery: string;
  readonly events: readonly JournalEvent[];
  /** The body is a list, even of one event. */
  readonly isBatch: boolean;
  /** The newest first. A call is signed with each. */
  readonly secrets: readonly string[];
  readonly at: Instant;
  /** Sent beside those of the server. */
  readonly headers: { readonly [name: string]: string };
  /** Ends the call. */
  readonly signal: AbortSignal;
}

export interface WebhookAnswer {
  readonly status: number;
  /** Milliseconds until the status came. */
  readonly elapsed: number;
  /** The beginning of the body. */
  readonly text: string;
  /** What the endpoint asks for, in milliseconds; null if it says nothing. */
  readonly retryAfter: number | null;
}

/** Calls endpoints. It rejects if no status came: the connection failed, or the address must not be called. */
export interface WebhookSender {
  /** What may be called beside public addresses. */
  readonly allowed: AllowList;
  send(call: WebhookCall): Promise<WebhookAnswer>;
  /** Closes idle connections. */
  close(): void;
}
