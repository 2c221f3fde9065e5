import type { Target } from "./target.ts";

/** An attack on the memory of a server, or on its other callers. */
export interface Flood {
  readonly name: string;
  /** Attacks a fresh server. Returns what to print. */
  run(target: Target, scale: number): Promise<string>;
}
