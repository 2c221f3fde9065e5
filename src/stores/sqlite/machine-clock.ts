import { readFileSync } from "node:fs";
import { uptime } from "node:os";
import type { MachineClock } from "../../ports/system.ts";

/**
 * The clock that all processes of this machine share, where there is one. Linux has it: what Node calls `hrtime` is the
 * kernel's monotonic clock, the same for all, and a boot has an id. Elsewhere a boot cannot be told from another.
 */
export function machineClock(): MachineClock | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return { boot, monotonic, slept };
  } catch {
    // Some containers hide it.
    return undefined;
  }
}

function monotonic(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** The uptime counts sleeps. A container may have one of its own, which is shorter: that tells nothing. */
function slept(): number {
  return Math.max(0, uptime() * 1_000 - monotonic());
}
