import type { Json } from "../../schema.ts";
import type { Instant } from "../../time.ts";
import type { JobId, JsonText, Policy, RetryPolicy } from "../job.ts";
import type { JobEventName } from "../lifecycle.ts";
import type { WorkerKind } from "../policy/policy.ts";
import type { ErrorInput } from "./decision.ts";

/** Limits that `extend` changes, in milliseconds; null is "none". */
export interface Extension {
  readonly attempt?: number | null;
  readonly total?: number | null;
  readonly heartbeat?: number | null;
}

/** What a manual retry changes beside the attempts. Fields that are not named stay. */
export interface RetryChanges {
  readonly retry?: Partial<RetryPolicy>;
  readonly meta?: { readonly [key: string]: Json };
  readonly priority?: number;
  /** The retry policy as it was sent: a reply shows it so. */
  readonly wireRetry?: { readonly [key: string]: Json };
}

export type JobEvent =
  | { readonly type: "activate" }
  /**
   * The sweep found `wakeAt` due. `seenAt`: the last beat of the worker that holds the job. `readAt`: when the row was read,
   * if that is a while ago. Beats change no revision, so silence counts only until then.
   */
  | { readonly type: "wake"; readonly seenAt?: Instant | null; readonly readAt?: Instant }
  | { readonly type: "claim"; readonly lease: number; readonly salt: number }
  /**
   * `upper` is the latest possible time. A handler never starts past a deadline. The limits of the attempt count from
   * `anchor`; from now if left out (SEMANTICS 3.10).
   */
  | {
      readonly type: "start";
      readonly policy: Policy;
      readonly upper: Instant;
      readonly anchor?: Instant;
      readonly kind?: WorkerKind;
    }
  /** `signalled`: the soft signal fired before the handler settled. */
  | { readonly type: "succeed"; readonly result?: JsonText; readonly signalled: boolean }
  | {
      readonly type: "fail";
      readonly error: ErrorInput;
      readonly signalled: boolean;
      /** The handler threw Discard: end the job, never as a dead letter. */
      readonly discard?: boolean;
      /** The reporter says that no retry can help. */
      readonly final?: boolean;
      /** The reporter wants a dead letter, whatever the policy says. */
      readonly deadLetter?: boolean;
      /**
       * The reporter wants a retry, even of an error that the policy excepts. Attempts and budgets still end the job.
       */
      readonly insist?: boolean;
    }
  | { readonly type: "expire"; readonly forced?: boolean; readonly stack?: string }
  /** `witnessed`: the holder itself saw that the handler was silent, whatever its own beats said. */
  | { readonly type: "stall"; readonly stack?: string; readonly witnessed?: boolean }
  | { readonly type: "snooze"; readonly dueAt: Instant; readonly signalled?: boolean }
  | { readonly type: "release"; readonly delay?: number; readonly error?: ErrorInput }
  /** `halted`: by its workflow, which may also end steps that no operator can. */
  | {
      readonly type: "cancel";
      readonly halted?: true;
      /** The job that takes its unique key. */
      readonly replacedBy?: JobId;
      /** The most milliseconds to keep the cancelled job. */
      readonly keptAtMost?: number;
    }
  /** There is no room for a waiting job. */
  | { readonly type: "drop"; readonly message: string }
  | ({ readonly type: "extend" } & Extension)
  | { readonly type: "retry"; readonly keepDeadline?: boolean; readonly changes?: RetryChanges }
  /**
   * All dependencies of a workflow step have ended. `results` is the list of their results, `limit` its maximum
   * length.
   */
  | {
      readonly type: "unblock";
      readonly results: JsonText;
      /** Characters of the results, if they are more than `limit` and `results` has not all of them. */
      readonly size?: number;
      readonly limit?: number;
      /** A step before it hides a part of its result, so people must not see the results that this one gets. */
      readonly hidesResults?: boolean;
    }
  /** A waiting job gets another priority. */
  | { readonly type: "prioritise"; readonly priority: number }
  /** A scheduled or retryable job is due at once. */
  | { readonly type: "run" }
  /** A waiting job is due at another time, later than now. */
  | { readonly type: "reschedule"; readonly dueAt: Instant };

export type EventOf<Name extends JobEventName> = Extract<JobEvent, { type: Name }>;
