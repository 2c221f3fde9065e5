import { availableParallelism } from "node:os";
import { refuse, refuseUnknownKeys } from "../core/errors.ts";
import { type AnyDefinition, assertDefinition } from "../core/job/job-definition.ts";
import { keysOf } from "../core/option-keys.ts";
import { type Duration, parseDuration } from "../core/time.ts";
import type { SandboxDeps, SandboxedProcessor, SandboxRunner } from "../ports/sandbox.ts";
import { startFile } from "../ports/start-file.ts";
import type { CarrierEvents, CarrierOptions } from "./carrier.ts";
import { ignoreDebugSignal } from "./debug-signal.ts";
import { strictCommand } from "./namespaces.ts";
import { Pool } from "./pool.ts";
import { ProcessCarrier } from "./process.ts";
import { ThreadCarrier } from "./thread.ts";

/** `"256mb"`, `"2gb"`: a size has its unit in its value, as a duration does. */
export type MemorySize = `${number}mb` | `${number}gb`;

export interface SandboxOptions {
  /**
   * A child process, which can always be killed, or a worker thread, which cannot be ended inside a native call.
   * Default process.
   */
  readonly kind?: "process" | "thread";
  /**
   * The most memory of one sandbox: the limit of its heap, and on Linux of all that a process, with the processes it
   * started, uses beyond what it used when its module was loaded. Default 512 MB.
   */
  readonly memory?: MemorySize;
  /** The most sandboxes at once. Default: the concurrency of the worker. A job that finds none free waits unstarted. */
  readonly size?: number;
  /** How many are started and loaded ahead of the jobs. Default 1. */
  readonly spare?: number;
  /** How long starting one and loading the module may take. Default 30 s. */
  readonly load?: Duration;
  /** Replace a sandbox after this many jobs. Default: never. */
  readonly jobs?: number;
  /** Replace a sandbox of this age, between two jobs. Default: never. */
  readonly age?: Duration;
  /** Environment variables that it may see, besides PATH, HOME, TZ, LANG and NODE_ENV. */
  readonly env?: readonly string[];
  /** Flags of Node, such as `--import=tsx`. Default: those of the worker's process. */
  readonly flags?: readonly string[];
  /** Flags of Node's permission model. Any list, even an empty one, turns it on. Then no stack can be captured. */
  readonly permissions?: readonly string[];
  /**
   * "strict" hides all other processes from a sandbox, so that it can neither signal its worker nor read its memory and
   * environment. Linux only. Default plain.
   */
  readonly isolation?: "plain" | "strict";
  /** Whether to capture the stack of code that hangs. Default true. */
  readonly capture?: boolean;
  /**
   * Whether SIGUSR1 still opens the debugger of the worker's process. Code in a sandbox can send that signal and then
   * run code in the worker. Default false.
   */
  readonly debugSignal?: boolean;
}

const KEYS = keysOf<SandboxOptions>({
  kind: true,
  memory: true,
  size: true,
  spare: true,
  load: true,
  jobs: true,
  age: true,
  env: true,
  flags: true,
  permissions: true,
  isolation: true,
  capture: true,
  debugSignal: true,
});
const MEGABYTE = 2 ** 20;
const LEAST_MEMORY = 64;

/**
 * A processor that runs in its own process, so that it can be killed at its deadline whatever it does. The module has
 * `export default processor(definition, handler)` with the same definition; the compiler checks it there.
 */
export function sandboxed(
  definition: AnyDefinition,
  module: URL,
  options: SandboxOptions = {},
): SandboxedProcessor {
  assertDefinition(definition, "definition");
  if (!(module instanceof URL) || module.protocol !== "file:")
    throw refuse("invalid_option", "module", module, 'pass new URL("./the-module.js", import.meta.url)');
  refuseUnknownKeys(options, "sandbox", KEYS);
  const settings = readOptions(definition, module, options);
  return {
    definition,
    handler: () => {
      throw new Error(`the processor of "${definition.type}" runs only in a sandbox`);
    },
    sandbox: (host: SandboxDeps): SandboxRunner => {
      if (host.system.isVirtual)
        throw refuse(
          "invalid_option",
          "work.processors",
          `the sandboxed "${definition.type}"`,
          "use openEngine, or pass processor(definition, handler) with the module's handler: a sandbox needs real time",
        );
      refuseOtherRuntime(definition.type, process.versions);
      if (settings.reaps && options.debugSignal !== true) ignoreDebugSignal(host.logger);
      return new Pool(host, settings);
    },
  };
}

/** Sandboxes start with flags of Node. In Bun the child would end while it loads, and each job would fail. */
export function refuseOtherRuntime(
  type: string,
  versions: Readonly<Record<string, string | undefined>>,
): void {
  if (versions.bun === undefined) return;
  throw refuse(
    "invalid_option",
    "work.processors",
    `the sandboxed "${type}" on Bun ${versions.bun}`,
    "run this worker with Node, or pass processor(definition, handler): sandboxes need Node",
  );
}

function readOptions(definition: AnyDefinition, module: URL, options: SandboxOptions) {
  const { kind = "process", env = [], permissions, capture = true } = options;
  if (kind !== "process" && kind !== "thread")
    throw refuse("invalid_option", "sandbox.kind", kind, 'write "process" or "thread"');
  if (kind === "thread" && permissions)
    throw refuse(
      "invalid_option",
      "sandbox.permissions",
      permissions,
      'leave it out, or use kind "process": threads have no permissions',
    );
  const command = commandOf(kind, options.isolation);
  const memory = parseMemory(options.memory ?? "512mb");
  const flags = [
    ...(options.flags ?? (kind === "process" ? inheritedFlags() : [])),
    ...(permissions ? permissionFlags(module, permissions) : []),
  ];
  const carrier: CarrierOptions = { memory, env, flags, captures: capture && !permissions, command };
  const Carried = kind === "thread" ? ThreadCarrier : ProcessCarrier;
  const open = (host: SandboxDeps, events: CarrierEvents) => new Carried(host.system, carrier, events);
  return {
    module: module.href,
    type: definition.type,
    open,
    size: options.size === undefined ? undefined : wholeNumber(options.size, "sandbox.size", 1),
    spare: wholeNumber(options.spare ?? 1, "sandbox.spare", 0),
    load: parseDuration(options.load ?? "30s", "sandbox.load"),
    loading: Math.max(2, availableParallelism() >> 1),
    jobs:
      options.jobs === undefined ? Number.POSITIVE_INFINITY : wholeNumber(options.jobs, "sandbox.jobs", 1),
    age: options.age === undefined ? Number.POSITIVE_INFINITY : parseDuration(options.age, "sandbox.age"),
    memory: memory * MEGABYTE,
    reaps: kind === "process",
  };
}

function commandOf(kind: string, isolation: unknown = "plain"): readonly string[] {
  if (isolation === "plain") return [];
  if (isolation !== "strict")
    throw refuse("invalid_option", "sandbox.isolation", isolation, 'write "plain" or "strict"');
  if (kind === "thread") {
    const fix = 'leave it out, or use kind "process": a thread is part of its worker';
    throw refuse("invalid_option", "sandbox.isolation", isolation, fix);
  }
  return strictCommand();
}

function wholeNumber(value: number, field: string, least: number): number {
  if (!Number.isInteger(value) || value < least)
    throw refuse("invalid_limit", field, value, `use a whole number from ${least}`);
  return value;
}

/** In megabytes. */
function parseMemory(value: unknown): number {
  const match = typeof value === "string" ? /^(\d+(?:\.\d+)?)(mb|gb)$/.exec(value) : null;
  const size = match ? Math.round(Number(match[1]) * (match[2] === "gb" ? 1_024 : 1)) : 0;
  if (size < LEAST_MEMORY)
    throw refuse(
      "invalid_limit",
      "sandbox.memory",
      value,
      `write "256mb" or "2gb", at least ${LEAST_MEMORY}mb`,
    );
  return size;
}

/** Flags that belong to one process: its debugger, its script given as text, its watcher, its limits. */
const OWN_FLAGS = /^--(inspect|disable-sigusr1|watch|test|input-type|max-old-space-size|permission|allow-)/;
const OWN_TEXTS = new Set(["-e", "--eval", "-p", "-pe", "--print"]);

/** The flags with which this process can load its modules, so that a child can load them too. */
function inheritedFlags(): string[] {
  const { execArgv } = process;
  return execArgv.filter(
    (flag, index) =>
      !OWN_FLAGS.test(flag) && !OWN_TEXTS.has(flag) && !OWN_TEXTS.has(execArgv[index - 1] ?? ""),
  );
}

/** The sandbox code and the folder of the module are readable. The user allows everything else. */
function permissionFlags(module: URL, permissions: readonly string[]): string[] {
  const readable = [new URL("../", startFile("sandbox/child")), new URL("./", module)];
  return [
    "--permission",
    ...readable.map((folder) => `--allow-fs-read=${decodeURIComponent(folder.pathname)}`),
    ...permissions,
  ];
}
