import { CurfewError } from "../core/errors.ts";
import type { AnyDefinition } from "../core/job/definition.ts";
import { progressFraction } from "../core/job/progress.ts";
import { type AbortReason, Snooze } from "../core/job/reasons.ts";
import { type Json, toJsonText, validate } from "../core/schema.ts";
import type { SandboxJob } from "../ports/sandbox.ts";
import { decodeError, type ErrorText, encodeError, encodeSnooze, type Report } from "./protocol.ts";

export type Hook = () => void | Promise<void>;

/** What the module of a sandbox exports: the same processor that would run in the worker itself. */
export interface LoadedModule {
  readonly definition: AnyDefinition;
  readonly handler: (context: object) => unknown;
  /** The module's own hook, for all its attempts. */
  readonly onCleanup: ((context: object) => void | Promise<void>) | undefined;
}

/** A checkpoint must fit a message whatever the engine's own limit is, which the parent applies. */
const DOCUMENT_LIMIT = 3_000_000;

/** One attempt inside its child. What it says after its end is dropped by the parent. */
export class ChildAttempt {
  readonly key: string;
  readonly #job: SandboxJob;
  readonly #module: LoadedModule;
  readonly #tell: (report: Report) => void;
  readonly #controller = new AbortController();
  readonly #hooks: Hook[] = [];
  readonly #kept = new Map<number, { resolve: () => void; reject: (error: unknown) => void }>();
  #deadline: number | null;
  /** On this process's own monotonic clock. */
  #softAt: number;
  #checkpoints = 0;
  #cleaning = 0;
  #hasSettled = false;
  readonly #onIdle: () => void;

  constructor(
    key: string,
    job: SandboxJob,
    module: LoadedModule,
    tell: (report: Report) => void,
    onIdle: () => void,
  ) {
    this.key = key;
    this.#job = job;
    this.#module = module;
    this.#tell = tell;
    this.#onIdle = onIdle;
    this.#deadline = job.deadline;
    this.#softAt = performance.now() + (job.remaining ?? Number.POSITIVE_INFINITY);
    const exported = module.onCleanup;
    if (exported) this.#hooks.push(() => exported(this.#context(undefined)));
  }

  async run(): Promise<void> {
    try {
      const { definition, handler } = this.#module;
      const raw: unknown = JSON.parse(this.#job.payload);
      const payload = definition.payload
        ? await validate(definition.payload, raw, "payload", "invalid_payload")
        : raw;
      const value = await handler(this.#context(payload));
      if (value instanceof Snooze) this.#settle({ say: "snoozed", key: this.key, when: encodeSnooze(value) });
      else {
        if (value !== undefined) toJsonText(value, "result", DOCUMENT_LIMIT);
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

  #settle(report: Report): void {
    this.#hasSettled = true;
    this.#tell(report);
    this.#idleIfDone();
  }

  #idleIfDone(): void {
    if (this.#hasSettled && this.#cleaning === 0) this.#onIdle();
  }

  abort(reason: AbortReason): void {
    this.#controller.abort(reason);
    this.#clean();
  }

  deadline(at: number | null, remaining: number | null): void {
    this.#deadline = at;
    this.#softAt = performance.now() + (remaining ?? Number.POSITIVE_INFINITY);
  }

  kept(number: number, error: ErrorText | undefined): void {
    const waiting = this.#kept.get(number);
    this.#kept.delete(number);
    if (error) waiting?.reject(decodeError(error));
    else waiting?.resolve();
  }

  #clean(): void {
    for (const hook of this.#hooks.splice(0)) {
      this.#cleaning += 1;
      void (async () => hook())()
        .catch((error) => this.#tell({ say: "cleanup_failed", key: this.key, error: encodeError(error) }))
        .finally(() => {
          this.#cleaning -= 1;
          this.#idleIfDone();
        });
    }
  }

  #checkpoint(state: Json): Promise<void> {
    toJsonText(state, "checkpoint", DOCUMENT_LIMIT);
    const number = this.#checkpoints++;
    this.#tell({ say: "checkpoint", key: this.key, number, state });
    return new Promise((resolve, reject) => this.#kept.set(number, { resolve, reject }));
  }

  #context(payload: unknown): object {
    const { id, type, queue, attempt, meta, checkpoint } = this.#job;
    const { key } = this;
    const deadlineOf = () => this.#deadline;
    const say = this.#tell;
    return {
      id,
      type,
      queue,
      payload,
      attempt,
      meta,
      signal: this.#controller.signal,
      get deadline() {
        return deadlineOf();
      },
      remaining: () => Math.max(0, this.#softAt - performance.now()),
      progress: (fraction: number, note?: Json) => {
        const value = progressFraction(fraction);
        if (note !== undefined) toJsonText(note, "progress", DOCUMENT_LIMIT);
        say({ say: "progress", key, fraction: value, ...(note !== undefined && { note }) });
      },
      checkpoint: async (state: Json) => this.#checkpoint(state),
      lastCheckpoint: checkpoint === null ? undefined : JSON.parse(checkpoint),
      beat: () => say({ say: "beat", key }),
      log: (message: string, fields?: { readonly [key: string]: Json }) => {
        if (fields !== undefined) toJsonText(fields, "log", DOCUMENT_LIMIT);
        say({ say: "log", key, message: String(message).slice(0, 4_000), ...(fields && { fields }) });
      },
      onCleanup: (hook: Hook) => {
        this.#hooks.push(hook);
        if (this.#controller.signal.aborted) this.#clean();
      },
      enqueue: () => {
        const fix = "return what is to be enqueued, and let the worker's process enqueue it";
        throw new CurfewError("invalid_option", `enqueue: is not available inside a sandbox; ${fix}`);
      },
    };
  }
}
