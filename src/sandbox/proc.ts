import { readFileSync } from "node:fs";

/**
 * What Linux shows about a process from outside. On other systems, and for a process that is gone, nothing is known.
 */

function read(pid: number, name: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "latin1");
  } catch {
    return undefined;
  }
}

/** The first process that it has started. */
export function childOf(pid: number): number | undefined {
  const [child] = (read(pid, `task/${pid}/children`) ?? "").split(" ");
  return child ? Number(child) : undefined;
}

/** The bytes of memory that it uses, heap or not. */
export function memoryOf(pid: number): number | undefined {
  // In kilobytes, whatever the page size of this machine is.
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(read(pid, "status") ?? "");
  return match ? Number(match[1]) * 1_024 : undefined;
}

/** Why a sandbox does not answer, as far as it is visible from outside. */
export interface Silence {
  /** It is not running, so it will not answer. */
  readonly isAsleep: boolean;
  readonly says: string;
}

export const UNSEEN: Silence = {
  isAsleep: false,
  says: "it is inside a native call, or the machine is too busy",
};

export function silenceOf(pid: number | undefined): Silence {
  // The name is in parentheses and may contain any character, so the state follows the last one.
  const state = pid && read(pid, "stat")?.split(") ").at(-1)?.[0];
  if (!state) return UNSEEN;
  if (state === "R")
    return {
      isAsleep: false,
      says: "it computes, in native code or on a machine that is too busy to let it answer",
    };
  const child = childOf(pid);
  const name = child ? read(child, "comm")?.trim() : undefined;
  const what = name ? `, with the process "${name}" under it` : "";
  return { isAsleep: true, says: `it sleeps inside a native call, as execFileSync does${what}` };
}
