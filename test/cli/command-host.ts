/**
 * Runs one command after the other in one process, each as if it had a process of its own: with its own environment,
 * its own output and no listeners of the command before it. Loading the program takes most of a command's time.
 */
import type { EventEmitter } from "node:events";
import type { run as runProgram } from "../../src/cli/program.ts";
import type { Ended } from "../server/command.ts";

export interface HostedCommand {
  readonly flags: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

const BUILT_PROGRAM = new URL("../../.cache/cli/program.js", import.meta.url).href;
const { run }: { run: typeof runProgram } = await import(BUILT_PROGRAM);

type Listener = (...given: unknown[]) => void;

/** Forgets what a command listens to. */
async function withoutListeners<Result>(work: () => Promise<Result>): Promise<Result> {
  const emitters: readonly EventEmitter[] = [process, process.stdout];
  const kept = emitters.map((emitter) => {
    const names = emitter.eventNames();
    return { emitter, listeners: new Map(names.map((name) => [name, emitter.listeners(name)])) };
  });
  try {
    return await work();
  } finally {
    for (const { emitter, listeners } of kept)
      for (const name of emitter.eventNames())
        for (const listener of emitter.listeners(name))
          if (!listeners.get(name)?.includes(listener)) emitter.off(name, listener as Listener);
  }
}

/** Takes what is written instead of the pipes. */
async function captured(work: () => Promise<number>): Promise<Ended> {
  const written = { stdout: "", stderr: "" };
  const real = { stdout: process.stdout.write, stderr: process.stderr.write };
  const taking =
    (name: keyof typeof written) =>
    (text: string | Uint8Array, ...rest: unknown[]): boolean => {
      written[name] += typeof text === "string" ? text : Buffer.from(text).toString();
      for (const one of rest) if (typeof one === "function") process.nextTick(one as () => void);
      return true;
    };
  process.stdout.write = taking("stdout");
  process.stderr.write = taking("stderr");
  try {
    const code = await work();
    return { code, ...written };
  } finally {
    Object.assign(process.stdout, { write: real.stdout });
    Object.assign(process.stderr, { write: real.stderr });
  }
}

process.on("message", async ({ flags, env }: HostedCommand) => {
  process.env = { ...env };
  const argv = [process.argv[0] as string, "curfew", ...flags];
  process.send?.(await withoutListeners(() => captured(() => run(argv))));
});
process.on("disconnect", () => process.exit());
process.send?.("ready");
