import { spawnSync } from "node:child_process";
import { refuse } from "../core/errors.ts";

/**
 * Starts a program in namespaces of its own for users, processes, mounts and System V memory. It needs no root. The
 * program sees no process outside, so it can signal and look into none, and everything that it starts ends with it. Its
 * user is mapped to one without any capability, so it cannot undo this.
 */
const UNSHARE = [
  "unshare",
  "--user",
  "--map-user=65534",
  "--map-group=65534",
  "--pid",
  "--fork",
  "--kill-child",
  "--mount-proc",
  "--ipc",
  "--",
];

let isChecked = false;

/** The command in front of a strict sandbox. Throws if this system cannot run it, so that a worker fails at its start. */
export function strictCommand(): readonly string[] {
  if (isChecked) return UNSHARE;
  const [command, ...flags] = UNSHARE as [string, ...string[]];
  const tried = process.platform === "linux" ? spawnSync(command, [...flags, "true"]) : undefined;
  if (tried?.status !== 0) {
    const says = tried?.error?.message ?? tried?.stderr?.toString().trim() ?? "this system is not Linux";
    const fix = "use Linux with util-linux 2.34 or newer and unprivileged user namespaces, or leave it out";
    throw refuse("invalid_option", "sandbox.isolation", "strict", `it cannot be kept here (${says}): ${fix}`);
  }
  isChecked = true;
  return UNSHARE;
}
