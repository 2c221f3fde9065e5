import { refuse } from "../core/errors.ts";
import { progressFraction } from "../core/job/documents/job-progress.ts";
import { pathsWithin } from "../core/job/documents/redaction.ts";
import { type EnqueueOptions, preparePayload } from "../core/job/enqueue/envelope.ts";
import { type AnyDefinition, assertDefinition } from "../core/job/job-definition.ts";
import { type AbortReason, Snooze } from "../core/job/reasons.ts";
import { portableDefinition, portableOptions } from "../core/job/transfer/portable.ts";
import { type Json, LOG_LINE_LIMIT, LOG_LINES_LIMIT, toJsonText, validate } from "../core/schema.ts";
import { runInside } from "../ports/ambient.ts";
import type { SandboxJob } from "../ports/sandbox.ts";
import { Output, writingTo } from "./child-output.ts";
import { Latest } from "./child-pace.ts";
import { Questions } from "./child-questions.ts";
import { type ErrorText, encodeError, encodeSnooze, type Report } from "./protocol.ts";
import { shapeProblem } from "./shape.ts";

export type Hook = () => void | Promise<void>;

/** What the module of a sandbox exports: the same processor that would run in the worker itself. */
export interface LoadedModule {
  readonly definition: AnyDefinition;
  readonly handler: (context: object) => unknown;
  /** The hook of the module, for all its attempts. */
  readonly onCleanup: ((context: object) => void | Promise<void>) | undefined;
}

/** The most bytes of a document that fit into a message, if the engine's limit is higher. */
const DOCUMENT_LIMIT = 3_000_000;
const LONGEST_MESSAGE = 4_000;

function refuseShape(text: string, field: string): void {
  const problem = shapeProblem(text);
  if (problem)
    throw refuse(
      "too_large",
      field,
      "a document",
      `it has ${problem}, which a sandbox cannot send: store it elsewhere`,
    );
}

/** One attempt inside its child. The parent drops what it sends after its end. */
export class ChildAttempt {
  readonly key: string;
  readonly #job: SandboxJob;
  readonly #module: LoadedModule;
  readonly #report: (report: Report) => void;
  readonly #controller = new AbortController();
  readonly #hooks: Hook[] = [];
  readonly #questions: Questions;
  readonly #output: Output;
  readonly #latest: { readonly progress: Latest; readonly beat: Latest };
  #logLines = 0;
  readonly #limit: number;
  #deadline: number | null;
  /** On the monotonic clock of this process. */
  #softAt: number;
  #cleaning = 0;
  #hasSettled = false;
  readonly #onIdle: () => void;

  constructor(
    key: string,
    job: SandboxJob,
    module: LoadedModule,
    report: (report: Report) => void,
    onIdle: () => void,
  ) {
    this.key = key;
    this.#job = job;
    this.#module = module;
    this.#report = report;
    this.#onIdle = onIdle;
    this.#questions = new Questions(report);
    this.#output = new Output(key, report);
    this.#latest = { progress: new Latest(report), beat: new Latest(report) };
    this.#limit = Math.min(job.documentLimit, DOCUMENT_LIMIT);
    this.#deadline = job.deadline;
    this.#softAt = performance.now() + (job.remaining ?? Number.POSITIVE_INFINITY);
  }

  run(): void {
    void writingTo(this.#output, () => this.#run());
  }

  async #run(): Promise<void> {
    try {
      const value = await this.#enter();
      if (value instanceof Snooze) this.#settle({ say: "snoozed", key: this.key, when: encodeSnooze(value) });
      else {
        if (value !== undefined) this.#check(value, "result");
        this.#settle({
          say: "returned",
          key: this.key,
          ...(value !== undefined && { result: value as Json }),
        });
      }
    } catch (error) {
      this.#settle({ say: "threw", key: this.key, error: encodeError(error) });
    }
  }

  async #enter(): Promise<unknown> {
    const { definition, handler, onCleanup } = this.#module;
    const raw: unknown = JSON.parse(this.#job.payload);
    const payload = definition.payload
      ? await validate(
          definition.payload,
          raw,
          "payload",
          "invalid_payload",
          pathsWithin(definition.redact, "payload"),
        )
      : raw;
    // A slow schema may use up the time: a handler never starts past its deadline.
    this.#controller.signal.throwIfAborted();
    const context = this.#context(payload);
    if (onCleanup) this.#hooks.push(() => onCleanup(context));
    // Calls inside get what is left of this attempt (SEMANTICS 10.6).
    const untilSignal = () => Math.max(0, this.#softAt - performance.now());
    return runInside({ untilSignal, signal: this.#controller.signal }, () => handler(context));
  }

  #settle(report: Report): void {
    this.#hasSettled = true;
    this.#output.flush();
    this.#latest.progress.flush();
    this.#report(report);
    this.#idleIfDone();
  }

  #idleIfDone(): void {
    if (this.#hasSettled && this.#cleaning === 0) this.#onIdle();
  }

  abort(reason: AbortReason): void {
    writingTo(this.#output, () => {
      this.#controller.abort(reason);
      this.#clean();
    });
  }

  deadline(at: number | null, remaining: number | null): void {
    this.#deadline = at;
    this.#softAt = performance.now() + (remaining ?? Number.POSITIVE_INFINITY);
  }

  answered(number: number, value: Json | undefined, error: ErrorText | undefined): void {
    this.#questions.answered(number, value, error);
  }

  #clean(): void {
    for (const hook of this.#hooks.splice(0)) {
      this.#cleaning += 1;
      void (async () => hook())()
        .catch((error) => this.#report({ say: "cleanup_failed", key: this.key, error: encodeError(error) }))
        .finally(() => {
          this.#cleaning -= 1;
          this.#output.flush();
          this.#idleIfDone();
        });
    }
  }

  /** The parent ends a sandbox that sends more than this allows, so a handler that does learns it here. */
  #check(value: unknown, field: string, limit = this.#limit): void {
    refuseShape(toJsonText(value, field, limit), field);
  }

  async #checkpoint(state: Json): Promise<void> {
    this.#check(state, "checkpoint");
    await this.#questions.ask((number) => ({ say: "checkpoint", key: this.key, number, state }));
  }

  /** The schema of the payload is code and stays here, so it is applied here. */
  async #enqueue(definition: AnyDefinition, payload: unknown, options?: EnqueueOptions): Promise<unknown> {
    assertDefinition(definition, "definition");
    const text = await preparePayload(definition, payload, this.#limit);
    refuseShape(text, "payload");
    const enqueue = {
      say: "enqueue" as const,
      key: this.key,
      definition: portableDefinition(definition, payload),
      options: portableOptions(options),
      payload: text,
    };
    return this.#questions.ask((number) => ({ ...enqueue, number }));
  }

  #progress(fraction: number, note: Json | undefined): void {
    const value = progressFraction(fraction);
    if (note !== undefined) this.#check(note, "progress");
    const { progress } = this.#latest;
    progress.say({ say: "progress", key: this.key, fraction: value, ...(note !== undefined && { note }) });
  }

  #log(text: string, fields: { readonly [key: string]: Json } | undefined): void {
    const message = String(text).slice(0, LONGEST_MESSAGE);
    // As long as the stored line, so that one that is too long is refused where it is written.
    if (fields)
      this.#check({ at: 10 ** 12, attempt: this.#job.attempt, message, fields }, "log", LOG_LINE_LIMIT);
    if (this.#logLines++ < LOG_LINES_LIMIT)
      this.#report({ say: "log", key: this.key, message, ...(fields && { fields }) });
  }

  #onCleanup(hook: Hook): void {
    this.#hooks.push(hook);
    if (this.#controller.signal.aborted) this.#clean();
  }

  #context(payload: unknown): object {
    const { id, type, queue, attempt, meta, parentResults, checkpoint } = this.#job;
    const deadlineOf = () => this.#deadline;
    return {
      id,
      type,
      queue,
      payload,
      attempt,
      meta,
      parentResults: JSON.parse(parentResults),
      signal: this.#controller.signal,
      get deadline() {
        return deadlineOf();
      },
      remaining: () => Math.max(0, this.#softAt - performance.now()),
      progress: (fraction: number, note?: Json) => this.#progress(fraction, note),
      checkpoint: (state: Json) => this.#checkpoint(state),
      lastCheckpoint: checkpoint === null ? undefined : JSON.parse(checkpoint),
      beat: () => this.#latest.beat.say({ say: "beat", key: this.key }),
      log: (message: string, fields?: { readonly [key: string]: Json }) => this.#log(message, fields),
      onCleanup: (hook: Hook) => this.#onCleanup(hook),
      enqueue: (definition: AnyDefinition, payload: unknown, options?: EnqueueOptions) =>
        this.#enqueue(definition, payload, options),
    };
  }
}
