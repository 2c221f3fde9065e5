import type { AnyDefinition } from "../core/job/job-definition.ts";
import type { PortableDefinition, PortableOptions } from "../core/job/portable.ts";
import type { AbortReason } from "../core/job/reasons.ts";
import type { Json } from "../core/schema.ts";
import type { Instant } from "../core/time.ts";
import type { Logger } from "./log.ts";
import type { System } from "./system.ts";

/** What the handler inside is told about its job. Documents cross as the JSON text they are stored as. */
export interface SandboxJob {
  readonly id: string;
  readonly type: string;
  readonly queue: string;
  readonly attempt: number;
  readonly meta: { readonly [key: string]: Json };
  readonly payload: string;
  /** A list. */
  readonly parentResults: string;
  readonly checkpoint: string | null;
  readonly deadline: Instant | null;
  /** The most bytes of a result, a checkpoint, a note of progress or a payload. */
  readonly documentLimit: number;
  /** Milliseconds until the soft signal when this was written; a sandbox has no clock in common with the store. */
  readonly remaining: number | null;
}

/** One attempt as a sandbox sees it: what to run, and whom to tell. */
export interface SandboxCall {
  /** Names the attempt in every message, so that late talk of one never reaches another. */
  readonly key: string;
  readonly job: SandboxJob;
  /** The longest silence that is allowed to it, in milliseconds: shortly before its end the stack is looked at. */
  readonly silence: number | null;
  progress(fraction: number, note: Json | undefined): void;
  checkpoint(state: Json): Promise<void>;
  /** The handler gave a sign of life. */
  beat(): void;
  /** The event loop inside gave a sign of life, whatever the handler does. */
  alive(): void;
  log(message: string, fields: { readonly [key: string]: Json } | undefined): void;
  cleanupFailed(error: unknown): void;
  /** Enqueues on behalf of this job (SEMANTICS 4.7). What comes from a sandbox is checked like what any user writes. */
  enqueue(
    definition: PortableDefinition,
    payload: string,
    options: PortableOptions,
  ): Promise<{ readonly id: string; readonly duplicate: boolean }>;
}

export interface SandboxEnd {
  /** False for a thread inside a native call, which nothing can end. */
  readonly isGone: boolean;
  readonly where: string | undefined;
}

/** One attempt under way in a sandbox. */
export interface SandboxRun {
  /** Settles as the handler does, and rejects when the sandbox dies under it. */
  readonly result: Promise<unknown>;
  abort(reason: AbortReason): void;
  /** The soft deadline moved. */
  deadline(at: Instant | null, remaining: number | null): void;
  /**
   * Its verdict has fallen, and nothing that it says counts any more. Resolves in a moment, when it is known where the
   * code hung or that this will stay unknown.
   */
  condemn(): Promise<void>;
  /** What is known so far about where the code hangs. */
  where(): string | undefined;
  /** Ends it by force, and says what was learned on the way. */
  kill(): Promise<SandboxEnd>;
}

/** Why the jobs of a sandbox are given back instead of being run, and for how long. */
export interface SandboxRefusal {
  readonly reason: string;
  readonly delay: number;
}

/** How the sandboxes of one processor stand. */
export interface SandboxStatus {
  /** The most at once. */
  readonly size: number;
  readonly busy: number;
  readonly loading: number;
  /** Jobs that wait for one. */
  readonly waiting: number;
}

/** Runs attempts of one processor outside of the event loop of its worker. */
export interface SandboxRunner {
  /**
   * Whether an attempt under this key can be run now; a sandbox is then kept for it for a moment. If not, one is being
   * started, and `again` is called when it is ready or is known not to come.
   */
  admits(key: string, again: () => void): boolean;
  /** The attempt that was to be admitted goes elsewhere. */
  dismiss(key: string): void;
  run(call: SandboxCall): SandboxRun;
  refusal(): SandboxRefusal | null;
  status(): SandboxStatus;
  /** Ends every sandbox; resolves when their processes are gone. */
  close(): Promise<void>;
}

/** What a sandbox needs of the worker that opens it. */
export interface SandboxHost {
  readonly system: System;
  readonly logger: Logger;
  /** The most attempts that the worker runs at once. */
  readonly concurrency: number;
  /** The runner began to refuse jobs, or takes them again. */
  changed(refusal: SandboxRefusal | null): void;
}

/** A processor whose handler lives in a module of its own; a worker opens a runner for it. */
export interface SandboxedProcessor {
  readonly definition: AnyDefinition;
  readonly handler: () => never;
  readonly sandbox: (host: SandboxHost) => SandboxRunner;
}

/** The result of a run that could not begin through no fault of its job: the job is given back unspent. */
export class SandboxUnavailable extends Error {
  override readonly name = "SandboxUnavailable";
  readonly delay: number;

  constructor(reason: string, delay: number) {
    super(reason);
    this.delay = delay;
  }
}

/** A sandbox that ended in the middle of an attempt: an ordinary failure, with what the operating system says of it. */
export class SandboxKilled extends Error {
  override readonly name = "killed";
  readonly code = "killed";
  readonly details: { readonly exitCode: number | null; readonly signal: string | null };

  constructor(
    because: string,
    exit: { readonly code: number | null; readonly signal: string | null },
    when = "in the middle of the attempt",
  ) {
    super(`The sandbox ended ${when} (${because})`);
    this.details = { exitCode: exit.code, signal: exit.signal };
    // The stack of whoever noticed the death says nothing about its cause.
    Object.defineProperty(this, "stack", { value: undefined });
  }
}
