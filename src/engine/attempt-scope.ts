import type { JobDefinition } from "../core/job/definition.ts";
import type { EnqueuedJob, EnqueueOptions } from "../core/job/envelope.ts";
import type { JobRow } from "../core/job/job.ts";
import { type Json, type Schema, validate } from "../core/schema.ts";
import type { Instant } from "../core/time.ts";
import type { AttemptParts } from "./parts.ts";
import type { AttemptContext } from "./processor.ts";

/** What a scope shows of the attempt behind it. */
export interface ScopedAttempt {
  readonly row: JobRow;
  readonly signal: AbortSignal;
  /** Set once nothing that the handler does counts any more. */
  readonly refusal: Error | undefined;
  readonly parts: AttemptParts;
  progress(fraction: number, note: Json | undefined): void;
  checkpoint(state: Json): Promise<void>;
  beat(): void;
  log(message: string, fields: { readonly [key: string]: Json } | undefined): void;
  onCleanup(hook: () => void | Promise<void>): void;
}

const UNREAD = Symbol("unread");

/**
 * What the handler sees of its attempt. Functions are made when they are read and carry their own `this`, so that
 * `({ payload, signal, progress }) => …` works and costs only what it names.
 */
export class AttemptScope implements AttemptContext {
  readonly #attempt: ScopedAttempt;
  #payload: unknown = UNREAD;

  constructor(attempt: ScopedAttempt) {
    this.#attempt = attempt;
  }

  /** Reads the payload by its schema; a promise where that takes its time. */
  parse(schema: Schema): Promise<void> | undefined {
    const payload = validate(schema, JSON.parse(this.#attempt.row.payload), "payload", "invalid_payload");
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
    return results === undefined ? [] : (JSON.parse(results) as readonly Json[]);
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
