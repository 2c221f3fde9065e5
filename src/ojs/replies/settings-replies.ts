import type { Rate } from "./wire-replies.ts";

/** What the HTTP interface says of webhooks, schemas, calendars, tenants and fair shares. */

export interface Webhook {
  readonly id: string;
  readonly url: string;
  readonly events: readonly string[];
  readonly filter?: { readonly queues?: readonly string[]; readonly job_types?: readonly string[] };
  readonly active: boolean;
  readonly ordered: boolean;
  readonly batch: { readonly max_events: number; readonly max_wait: string } | null;
  /** Seconds. */
  readonly timeout: number;
  readonly retry: { readonly max_attempts: number; readonly delays: readonly string[] };
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly header_names: readonly string[];
  readonly created_at: string;
  readonly updated_at: string;
  readonly circuit: { readonly state: "closed" | "open" | "half-open"; readonly until: string | null };
  readonly success_count: number;
  readonly failure_count: number;
  readonly dead_count: number;
  readonly last_delivery_at: string | null;
  readonly last_failure_at: string | null;
  readonly last_error: string | null;
}

export interface Delivery {
  readonly id: string;
  readonly subscription_id: string;
  readonly status: DeliveryState;
  readonly events: readonly { readonly id: string; readonly type: string; readonly job_id: string | null }[];
  readonly event_types: readonly string[];
  readonly attempts: number;
  readonly created_at: string;
  readonly completed_at: string | null;
  readonly next_attempt_at: string | null;
  readonly response: {
    readonly status_code: number;
    readonly response_time_ms: number;
    readonly response_body: string;
  } | null;
  readonly errors: readonly {
    readonly occurred_at: string;
    readonly attempt: number;
    readonly code: string;
    readonly message: string;
  }[];
  readonly redelivery_of: string | null;
}

export interface WebhookTest {
  readonly success: boolean;
  readonly status_code: number | null;
  readonly response_time_ms: number;
  readonly response_body: string;
  readonly error: string | null;
}

export interface SchemaSummary {
  readonly type: string;
  readonly version: Version;
  readonly versions: readonly Version[];
  readonly validation: "named" | "always";
  readonly compatibility: "none" | "backward" | "forward" | "full";
}

export interface JobSchema extends Omit<SchemaSummary, "versions"> {
  readonly uri: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly created_at: string;
}

export interface SchemaCheck {
  readonly compatible: boolean;
  readonly valid: boolean;
  readonly reasons: readonly string[];
}

export interface CalendarDay {
  readonly date: string;
  /** Left out: closed all day. */
  readonly hours?: string;
  readonly name?: string;
}

export interface Calendar {
  readonly name: string;
  readonly zone: string;
  readonly week: Readonly<Partial<Record<Weekday, string>>>;
  readonly days: readonly CalendarDay[];
  /** The last day for which the days are complete. */
  readonly until?: string | null;
}

export interface ExplainedTime {
  readonly at: string;
  readonly local: string;
  readonly zone: string;
  readonly text: string;
}

export interface Tenant {
  readonly tenant_id: string;
  readonly created_at: string;
  readonly limits: {
    readonly max_concurrency: number | null;
    readonly max_enqueue_rate: Rate | null;
    readonly max_queue_depth: number | null;
    readonly max_payload_bytes: number | null;
  };
  readonly jobs?: { readonly active: number; readonly waiting: number };
}

export interface Shares {
  readonly fair: boolean;
  readonly items: readonly {
    /** Empty: the jobs without a key. */
    readonly key: string;
    readonly weight: number;
    readonly share: number;
    readonly waiting: number;
    readonly next_due_at: string;
  }[];
  readonly has_more: boolean;
}

export const DELIVERY_STATES = ["waiting", "calling", "retrying", "delivered", "dead", "cancelled"] as const;

export type DeliveryState = (typeof DELIVERY_STATES)[number];

export type Version = number | string;

export type Weekday = "mon" | "tue" | "wed" | "thu" | "fri" | "sat" | "sun";
