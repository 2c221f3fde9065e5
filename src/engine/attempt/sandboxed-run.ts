import { refuse } from "../../core/errors.ts";
import type { JobRow } from "../../core/job/job.ts";
import { defineJob } from "../../core/job/job-definition.ts";
import type { PortableDefinition, PortableOptions } from "../../core/job/portable.ts";
import type { AbortReason } from "../../core/job/reasons.ts";
import type { Instant } from "../../core/time.ts";
import type { SandboxCall, SandboxRun, SandboxRunner } from "../../ports/sandbox.ts";
import type { ScopedAttempt } from "./attempt-scope.ts";
import { cleanupFailed } from "./cleanup-hooks.ts";

const UNKNOWN = "(no stack yet; the event job.killed tells what was learned after the verdict)";

/** Names an attempt towards its sandbox: the fence grows with every claim of the job. */
export function runKey({ id, fence }: Pick<JobRow, "id" | "fence">): string {
  return `${id} ${fence}`;
}

/** An attempt and the sandbox that it runs in: hands on what the one says to the other. */
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

  /** Where nobody named a heartbeat, the event loop inside beats for the attempt, as a worker's own does. */
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
      throw refuse("invalid_option", "options.tx", options.tx, "it cannot leave its process");
    const job = await parts.enqueueFrom(row, defineJob(definition), JSON.parse(payload), options);
    return { id: job.id, duplicate: job.duplicate };
  }

  /** The limits of the job were changed from outside. */
  refreshed(): void {
    this.run.deadline(this.#attempt.row.softAt, this.#remaining);
  }

  /** The verdict has fallen; resolves in a moment, when it is known where the code hung (SEMANTICS 8.4). */
  condemn(): Promise<void> {
    return this.run.condemn();
  }

  /** Where the code hung, for the error; also written to the job's log. */
  hung(): { readonly stack: string } {
    const stack = this.run.where() ?? UNKNOWN;
    this.#attempt.log(stack, undefined);
    return { stack };
  }

  /** Ends the sandbox after the verdict; answers whether it is gone. */
  async end(): Promise<boolean> {
    const { isGone, where } = await this.run.kill();
    const { row, parts } = this.#attempt;
    const { bus, clock, logger } = parts;
    logger.warn(
      { job: row.id, type: row.type, attempt: row.attempt, where },
      isGone ? "a sandbox was ended by force" : "a thread cannot be ended inside a native call",
    );
    if (isGone && bus.wants("job.killed"))
      bus.emit({ ...bus.detail(row, "job.killed", clock.now()), ...(where !== undefined && { where }) });
    return isGone;
  }
}
