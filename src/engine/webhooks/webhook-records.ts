import type { Instant } from "../../core/time.ts";
import type { OpenCircuit } from "../../core/webhook/circuit.ts";
import type { WebhookSecrets } from "../../core/webhook/secret.ts";
import type { Subscription } from "../../core/webhook/subscription.ts";
import { recordKind } from "../commit/record-kind.ts";

/** How far the deliveries of a subscription are made. It moves in the unit that stores them. */
export interface WebhookCursor {
  /** The journal's cursor. Null: its beginning. */
  readonly cursor: string | null;
  /** When the last delivery was made. The next one is later, whichever process makes it. */
  readonly at: Instant;
}

/** What the calls of a subscription came to. Counts of a process that dies may miss its last seconds. */
export interface WebhookState {
  readonly circuit: OpenCircuit | null;
  readonly delivered: number;
  /** Calls that failed and are tried again. */
  readonly failed: number;
  readonly dead: number;
  readonly deliveredAt: Instant | null;
  readonly failedAt: Instant | null;
  readonly lastError: string | null;
}

/** The process that makes deliveries from the journal, until it says so again. */
interface Lead {
  readonly owner: string;
  readonly until: Instant;
}

export const WEBHOOKS = recordKind<Subscription>("webhook");
export const SECRETS = recordKind<WebhookSecrets>("webhook-secret");
export const CURSORS = recordKind<WebhookCursor>("webhook-cursor");
export const STATES = recordKind<WebhookState>("webhook-state");
export const LEADS = recordKind<Lead>("webhook-lead");

export const NEW_STATE: WebhookState = {
  circuit: null,
  delivered: 0,
  failed: 0,
  dead: 0,
  deliveredAt: null,
  failedAt: null,
  lastError: null,
};

/** A process makes calls and reads the journal for all subscriptions, so their number is bounded. */
export const MOST_SUBSCRIPTIONS = 500;
