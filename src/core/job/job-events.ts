import type { Instant } from "../time.ts";
import type { ErrorInput } from "./decision.ts";
import type { JobId, JsonText, Policy } from "./job.ts";
import type { JobEventName } from "./lifecycle.ts";
import type { WorkerKind } from "./policy.ts";

/** Limits that `extend` changes, in milliseconds; null is "none". */
export interface Extension {
  readonly attempt?: number | null;
  readonly total?: number | null;
  readonly heartbeat?: number | null;
}

export type JobEvent =
  | { readonly type: "activate" }
  /** The sweep found `wakeAt` due. `seenAt`: when the worker that holds the job last beat. */
  | { readonly type: "wake"; readonly seenAt?: Instant | null }
  | { readonly type: "claim"; readonly lease: number; readonly salt: number }
  /**
   * `upper` is the latest that it may be now: a handler is never entered past a deadline. The limits of the attempt count
   * from `anchor`, now if left out (SEMANTICS 3.10).
   */
  | {
      readonly type: "start";
      readonly policy: Policy;
      readonly upper: Instant;
      readonly anchor?: Instant;
      readonly kind?: WorkerKind;
    }
  /** `signalled`: our soft signal for a timeout had been given before the handler settled. */
  | { readonly type: "succeed"; readonly result?: JsonText; readonly signalled: boolean }
  | {
      readonly type: "fail";
      readonly error: ErrorInput;
      readonly signalled: boolean;
      /** The handler threw Discard: end it, never as a dead letter. */
      readonly discard?: boolean;
      /** The reporter says that no retry can help. */
      readonly final?: boolean;
      /** The reporter wants it kept as a dead letter, whatever the policy says. */
      readonly deadLetter?: boolean;
      /** The reporter wants a retry even of an error that the policy excepts; attempts and budgets still end it. */
      readonly insist?: boolean;
    }
  | { readonly type: "expire"; readonly forced?: boolean; readonly stack?: string }
  /** `witnessed`: the holder itself saw that the handler gave no sign of life, whatever its own beats said meanwhile. */
  | { readonly type: "stall"; readonly stack?: string; readonly witnessed?: boolean }
  | { readonly type: "snooze"; readonly dueAt: Instant }
  | { readonly type: "release"; readonly delay?: number; readonly error?: ErrorInput }
  /** `halted`: by the workflow that it belongs to, which may also end what no operator can. */
  | {
      readonly type: "cancel";
      readonly halted?: true;
      /** The job that takes its unique key. */
      readonly replacedBy?: JobId;
    }
  /** There is no room for a waiting job. */
  | { readonly type: "drop"; readonly message: string }
  | ({ readonly type: "extend" } & Extension)
  | { readonly type: "retry"; readonly keepDeadline?: boolean }
  /** Its turn in a workflow has come; `results` is the list of what the steps before it gave, `limit` how long it may be. */
  | { readonly type: "reach"; readonly results: JsonText; readonly limit?: number }
  /** Another place in the queue for a job that waits. */
  | { readonly type: "prioritise"; readonly priority: number }
  /** A scheduled or retryable job is due at once. */
  | { readonly type: "run" };

/** One event by its name. */
export type EventOf<Name extends JobEventName> = Extract<JobEvent, { type: Name }>;
