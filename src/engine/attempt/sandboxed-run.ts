import { refuse } from "../../core/errors.ts";
import type { JobRow } from "../../core/job/job.ts";
import { defineJob } from "../../core/job/job-definition.ts";
import type { AbortReason } from "../../core/job/reasons.ts";
import type { PortableDefinition, PortableOptions } from "../../core/job/transfer/portable.ts";
import type { Instant } from "../../core/time.ts";
import type { SandboxCall, SandboxRun, SandboxRunner } from "../../ports/sandbox.ts";
import type { ScopedAttempt } from "./attempt-scope.ts";
import { cleanupFailed } from "./cleanup-hooks.ts";

const UNKNOWN = "(no stack yet; see `where` of the event job.killed)";

/** The key of an attempt in its sandbox. The fence grows with every claim of the job, so the key is unique. */
export function runKey({ id, fence }: Pick<JobRow, "id" | "fence">): string {
  return `${id} ${fence}`;
}

/** One attempt that runs in a sandbox. Passes messages between the two. */
export class SandboxedRun {
  readonly run: SandboxRun;
  readonly #attempt: ScopedAttempt;
  #aliveAt: Instant;

  constructor(attempt: ScopedAttempt, runner: SandboxRunner) {
    this.#attempt = attempt;
    this.#aliveAt = attempt.parts.clock.now();
    this.run = runner.run(this.#call());
    const { signal } = attempt;
    const abort = () => this.run.abort(signal.reason as AbortReason);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  }

  /** Without a `heartbeat` setting, the event loop inside the sandbox beats for the attempt. Null with one. */
  get stallAt(): Instant | null {
    const { policy, heartbeat } = this.#attempt.row;
    return policy?.beats !== "worker" || heartbeat === null ? null : this.#aliveAt + heartbeat;
  }

  get #remaining(): number | null {
    const { row, parts } = this.#attempt;
    return row.softAt === null ? null : Math.max(0, row.softAt - parts.clock.upper());
  }

  #call(): SandboxCall {
    const attempt = this.#attempt;
    const { id, type, queue, attempt: number, payload, checkpoint, softAt, options, heartbeat } = attempt.row;
    const meta = options?.meta ?? {};
    const remaining = this.#remaining;
    return {
      key: runKey(attempt.row),
      job: {
        id,
        type,
        queue,
        attempt: number,
        meta,
        payload,
        parentResults: options?.parentResults ?? "[]",
        checkpoint,
        deadline: softAt,
        documentLimit: attempt.parts.documentLimit,
        remaining,
      },
      silence: heartbeat,
      progress: (fraction, note) => attempt.progress(fraction, note),
      checkpoint: async (state) => attempt.checkpoint(state),
      beat: () => attempt.beat(),
      alive: () => {
        this.#aliveAt = attempt.parts.clock.now();
      },
      log: (message, fields) => attempt.log(message, fields),
      enqueue: (definition, payload, options) => this.#enqueue(definition, payload, options),
      cleanupFailed: (error) => cleanupFailed(attempt.parts, attempt.row, error),
    };
  }

  async #enqueue(definition: PortableDefinition, payload: string, options: PortableOptions) {
    const { refusal, parts, row } = this.#attempt;
    if (refusal) throw refusal;
    if ("tx" in options)
      throw refuse("invalid_option", "options.tx", options.tx, "leave it out: a sandbox has no access to it");
    const job = await parts.enqueueFrom(row, defineJob(definition), JSON.parse(payload), options);
    return { id: job.id, duplicate: job.duplicate };
  }

  /** The deadlines of the job changed. */
  refreshed(): void {
    this.run.deadline(this.#attempt.row.softAt, this.#remaining);
  }

  /** The hard deadline has passed. Resolves when the stack is known, after at most 100 ms (SEMANTICS 8.4). */
  condemn(): Promise<void> {
    return this.run.condemn();
  }

  /** The stack where the code hung, for the error. Also adds it to the job's log. */
  hung(): { readonly stack: string } {
    const stack = this.run.where() ?? UNKNOWN;
    this.#attempt.log(stack, undefined);
    return { stack };
  }

  /** Kills the sandbox after the verdict. Returns whether it is gone. */
  async end(): Promise<boolean> {
    const { isGone, where } = await this.run.kill();
    const { row, parts } = this.#attempt;
    parts.logger.warn(
      { job: row.id, type: row.type, attempt: row.attempt, where },
      isGone
        ? "the sandbox was killed"
        : "the sandbox still runs: a thread inside a native call cannot be killed",
    );
    if (isGone) this.#announceKilled(where);
    // The result of a killed run settles when its sandbox is gone.
    else
      void this.run.result.then(
        () => this.#announceKilled(where),
        () => this.#announceKilled(where),
      );
    return isGone;
  }

  #announceKilled(where: string | undefined): void {
    const { row, parts } = this.#attempt;
    const { bus, clock } = parts;
    if (bus.wants("job.killed"))
      bus.emit({ ...bus.detail(row, "job.killed", clock.now()), ...(where !== undefined && { where }) });
  }
}
