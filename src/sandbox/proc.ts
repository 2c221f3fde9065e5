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

/** The processes that it has started. Those of its other threads are left out. */
function childrenOf(pid: number): number[] {
  return (read(pid, `task/${pid}/children`) ?? "").split(" ").filter(Boolean).map(Number);
}

/** The first process that it has started. */
export function childOf(pid: number): number | undefined {
  return childrenOf(pid)[0];
}

/** Processes whose memory is added up. More of them would keep the worker busy. */
const MOST_PROCESSES = 200;

/**
 * The bytes of memory that it uses, heap or not, and those that the processes under it have for themselves. What they
 * share, such as the code of their programs, is left out.
 */
export function memoryOf(pid: number): number | undefined {
  const own = bytesOf(pid, "VmRSS");
  if (own === undefined) return undefined;
  let sum = own;
  const under = childrenOf(pid);
  for (let index = 0; index < under.length && index < MOST_PROCESSES; index++) {
    sum += bytesOf(under[index] as number, "RssAnon") ?? 0;
    under.push(...childrenOf(under[index] as number));
  }
  return sum;
}

function bytesOf(pid: number, field: string): number | undefined {
  // In kilobytes, whatever the page size of this machine is.
  const match = new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(read(pid, "status") ?? "");
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
