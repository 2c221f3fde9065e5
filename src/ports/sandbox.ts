import type { AnyDefinition } from "../core/job/job-definition.ts";
import type { AbortReason } from "../core/job/reasons.ts";
import type { PortableDefinition, PortableOptions } from "../core/job/transfer/portable.ts";
import type { Json } from "../core/schema.ts";
import type { Instant } from "../core/time.ts";
import type { Logger } from "./log.ts";
import type { System } from "./system.ts";

/** What the handler in a sandbox learns about its job. Documents cross as the JSON text that the store holds. */
export interface SandboxJob {
  readonly id: string;
  readonly type: string;
  readonly queue: string;
  readonly attempt: number;
  readonly meta: { readonly [key: string]: Json };
  readonly payload: string;
  /** A JSON list. */
  readonly parentResults: string;
  readonly checkpoint: string | null;
  readonly deadline: Instant | null;
  /** The most bytes of a result, a checkpoint, a progress note or a payload. */
  readonly documentLimit: number;
  /**
   * Milliseconds from the moment of writing until the soft signal. A duration, because a sandbox does not know the
   * store's time.
   */
  readonly remaining: number | null;
}

/** One attempt for a sandbox: the job to run, and the callbacks for what its handler does. */
export interface SandboxCall {
  /** Every message names the attempt by this key, so that a late message of one attempt never reaches another. */
  readonly key: string;
  readonly job: SandboxJob;
  /** The longest allowed silence, in milliseconds. The runner reads the stack of the sandbox shortly before it ends. */
  readonly silence: number | null;
  progress(fraction: number, note: Json | undefined): void;
  checkpoint(state: Json): Promise<void>;
  /** The handler called `beat`. */
  beat(): void;
  /** The event loop of the sandbox still runs. This says nothing about the handler. */
  alive(): void;
  log(message: string, fields: { readonly [key: string]: Json } | undefined): void;
  cleanupFailed(error: unknown): void;
  /** Enqueues on behalf of this job (SEMANTICS 4.7). Input from a sandbox is checked as any user's input is. */
  enqueue(
    definition: PortableDefinition,
    payload: string,
    options: PortableOptions,
  ): Promise<{ readonly id: string; readonly duplicate: boolean }>;
}

export interface SandboxEnd {
  /** False for a thread that is inside a native call: nothing can end it. */
  readonly isGone: boolean;
  readonly where: string | undefined;
}

/** One running attempt in a sandbox. */
export interface SandboxRun {
  /** Settles as the handler does. Rejects if the sandbox dies first. */
  readonly result: Promise<unknown>;
  abort(reason: AbortReason): void;
  /** Tells the handler that its soft deadline moved. */
  deadline(at: Instant | null, remaining: number | null): void;
  /**
   * The verdict is decided, so further messages of the attempt are ignored. Resolves shortly after, when the runner
   * knows where the code hung or knows that it cannot find out.
   */
  condemn(): Promise<void>;
  /** Where the code hangs, as far as the runner knows. */
  where(): string | undefined;
  /** Ends the attempt by force. The answer says whether it is gone and where its code hung. */
  kill(): Promise<SandboxEnd>;
}

/** Why jobs are released instead of run, and after what delay they are due again. */
export interface SandboxRefusal {
  readonly reason: string;
  readonly delay: number;
}

/** How many sandboxes of one processor are in use. */
export interface SandboxStatus {
  /** The most sandboxes at once. */
  readonly size: number;
  readonly busy: number;
  readonly loading: number;
  /** Jobs that wait for a sandbox. */
  readonly waiting: number;
}

/** Runs the attempts of one processor outside the event loop of its worker. */
export interface SandboxRunner {
  /**
   * Whether an attempt under this key can run now. If so, a sandbox is reserved for it for a short time. If not, a
   * sandbox is being started, and `again` is called when it is ready or failed to start.
   */
  admits(key: string, again: () => void): boolean;
  /** Gives back the sandbox that `admits` reserved, or stops waiting for one. */
  dismiss(key: string): void;
  run(call: SandboxCall): SandboxRun;
  refusal(): SandboxRefusal | null;
  status(): SandboxStatus;
  /** Ends every sandbox. Resolves when their processes are gone. */
  close(): Promise<void>;
}

/** What a sandbox needs from the worker that opens it. */
export interface SandboxDeps {
  readonly system: System;
  readonly logger: Logger;
  /** The most attempts that the worker runs at once. */
  readonly concurrency: number;
  /** Called when the runner begins to refuse jobs, and with null when it accepts them again. */
  changed(refusal: SandboxRefusal | null): void;
}

/** A processor whose handler is in a separate module. A worker opens a runner for it. */
export interface SandboxedProcessor {
  readonly definition: AnyDefinition;
  readonly handler: () => never;
  readonly sandbox: (host: SandboxDeps) => SandboxRunner;
}

/**
 * The error of a run that could not begin, through no fault of its job. The job is released and the attempt is not
 * counted.
 */
export class SandboxUnavailable extends Error {
  override readonly name = "SandboxUnavailable";
  readonly delay: number;

  constructor(reason: string, delay: number) {
    super(reason);
    this.delay = delay;
  }
}

/** The error of an attempt whose sandbox ended during it: an ordinary failure, with the exit code and signal. */
export class SandboxKilled extends Error {
  override readonly name = "killed";
  readonly code = "killed";
  readonly details: { readonly exitCode: number | null; readonly signal: string | null };

  constructor(
    because: string,
    exit: { readonly code: number | null; readonly signal: string | null },
    when = "during the attempt",
  ) {
    super(`The sandbox ended ${when} (${because})`);
    this.details = { exitCode: exit.code, signal: exit.signal };
    // This stack belongs to the code that noticed the death. It does not show the cause.
    Object.defineProperty(this, "stack", { value: undefined });
  }
}
