import { readFileSync } from "node:fs";
import { uptime } from "node:os";
import type { MachineClock } from "../../ports/system.ts";

/**
 * The clock that all processes of this machine share, if there is one. On Linux, Node's `hrtime` is the kernel's
 * monotonic clock, equal for all processes, and a boot has an id. Other systems have no id of a boot.
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

/** The uptime includes sleeps. A container may have its own, shorter uptime; then the result is 0. */
function slept(): number {
  return Math.max(0, uptime() * 1_000 - monotonic());
}
