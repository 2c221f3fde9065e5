import { refuse } from "../../core/errors.ts";
import { pathsWithin } from "../../core/job/documents/redaction.ts";
import { isSealed, opened } from "../../core/job/documents/sealed.ts";
import type { EnqueueContext, EnqueuedJob, EnqueueOptions } from "../../core/job/enqueue/envelope.ts";
import type { JobRow } from "../../core/job/job.ts";
import type { JobDefinition } from "../../core/job/job-definition.ts";
import { type Json, type Schema, validate } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import type { AttemptParts } from "../context.ts";
import type { AttemptContext } from "./processor.ts";

/** What a scope needs from its attempt. */
export interface ScopedAttempt {
  readonly row: JobRow;
  readonly signal: AbortSignal;
  /** Why calls of the handler are refused; undefined while the attempt is valid. */
  readonly refusal: Error | undefined;
  readonly parts: AttemptParts;
  progress(fraction: number, note: Json | undefined): void;
  checkpoint(state: Json): Promise<void>;
  beat(): void;
  log(message: string, fields: { readonly [key: string]: Json } | undefined): void;
  onCleanup(hook: () => void | Promise<void>): void;
}

/** The job whose `total` the new job inherits. */
export type Parent = NonNullable<EnqueueContext["parent"]>;

/** The running job that a call names as the parent, if it names one. */
export function parentOf(context: unknown, field: string): Parent | undefined {
  if (context === undefined) return undefined;
  if (typeof context === "object" && context !== null) return AttemptScope.parentOf(context, field);
  throw refuse("invalid_option", field, context, "pass the context of the handler, or leave it out");
}

const UNREAD = Symbol("unread");

/**
 * The context that the handler gets. A function is made when it is read and bound to the attempt, so that
 * `({ payload, signal, progress }) => …` works and costs only what it names.
 */
export class AttemptScope implements AttemptContext {
  readonly #attempt: ScopedAttempt;
  #payload: unknown = UNREAD;

  constructor(attempt: ScopedAttempt) {
    this.#attempt = attempt;
  }

  /** The job of a handler's context, as the parent of new jobs. Throws if the attempt is over or lost. */
  static parentOf(context: object, field: string): Parent {
    if (!(#attempt in context)) {
      const fix = "pass the context that the handler was called with; a copy does not work";
      throw refuse("invalid_option", field, context, fix);
    }
    const { refusal, row } = context.#attempt;
    if (refusal) throw refusal;
    return { id: row.id, totalAt: row.totalAt };
  }

  /** Parses the payload by its schema. Returns a promise if the schema is asynchronous. */
  parse(schema: Schema): Promise<void> | undefined {
    const { payload: text, options } = this.#attempt.row;
    const hidden = options?.redact && pathsWithin(options.redact, "payload");
    const payload = validate(schema, JSON.parse(text), "payload", "invalid_payload", hidden);
    if (payload instanceof Promise)
      return payload.then((value) => {
        this.#payload = value;
      });
    this.#payload = payload;
    return undefined;
  }

  get id(): string {
    return this.#attempt.row.id;
  }

  get type(): string {
    return this.#attempt.row.type;
  }

  get queue(): string {
    return this.#attempt.row.queue;
  }

  get payload(): unknown {
    if (this.#payload === UNREAD) this.#payload = JSON.parse(this.#attempt.row.payload);
    return this.#payload;
  }

  get attempt(): number {
    return this.#attempt.row.attempt;
  }

  get meta(): { readonly [key: string]: Json } {
    return this.#attempt.row.options?.meta ?? {};
  }

  get parentResults(): readonly Json[] {
    const results = this.#attempt.row.options?.parentResults;
    if (results === undefined) return [];
    const { sealing } = this.#attempt.parts;
    return (JSON.parse(results) as readonly Json[]).map((result) => {
      const text = typeof result === "object" ? JSON.stringify(result) : null;
      return isSealed(text) ? (JSON.parse(opened(sealing, text, null, "result")) as Json) : result;
    });
  }

  get signal(): AbortSignal {
    return this.#attempt.signal;
  }

  get deadline(): Instant | null {
    return this.#attempt.row.softAt;
  }

  get remaining(): () => number {
    return () => {
      const { softAt } = this.#attempt.row;
      return softAt === null
        ? Number.POSITIVE_INFINITY
        : Math.max(0, softAt - this.#attempt.parts.clock.upper());
    };
  }

  /** As `remaining`, by the clock that decides when the signal is due. */
  untilSignal(): number {
    const { softAt } = this.#attempt.row;
    return softAt === null ? Number.POSITIVE_INFINITY : Math.max(0, softAt - this.#attempt.parts.clock.now());
  }

  get progress(): (fraction: number, note?: Json) => void {
    return (fraction, note) => this.#attempt.progress(fraction, note);
  }

  get checkpoint(): (state: Json) => Promise<void> {
    return (state) => this.#attempt.checkpoint(state);
  }

  get lastCheckpoint(): Json | undefined {
    const { checkpoint } = this.#attempt.row;
    return checkpoint === null ? undefined : (JSON.parse(checkpoint) as Json);
  }

  get beat(): () => void {
    return () => this.#attempt.beat();
  }

  get log(): (message: string, fields?: { readonly [key: string]: Json }) => void {
    return (message, fields) => this.#attempt.log(message, fields);
  }

  get onCleanup(): (hook: () => void | Promise<void>) => void {
    return (hook) => this.#attempt.onCleanup(hook);
  }

  get enqueue(): <Input>(
    definition: JobDefinition<Input, unknown, unknown>,
    payload: NoInfer<Input>,
    options?: EnqueueOptions,
  ) => Promise<EnqueuedJob> {
    return async (definition, payload, options) => {
      const { refusal, parts, row } = this.#attempt;
      if (refusal) throw refusal;
      return parts.enqueueFrom(row, definition, payload, options);
    };
  }
}
