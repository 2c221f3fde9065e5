import { CurfewError } from "./errors.ts";

const OLDEST = [22, 14] as const;

/** Refuses an old Node in one sentence, before anything is loaded that it cannot load. */
export function refuseOldNode(version: string): void {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return;
  throw new CurfewError(
    "unsupported_node",
    `curfew needs Node ${OLDEST.join(".")} or newer; this is Node ${version}`,
  );
}
