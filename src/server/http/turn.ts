import { realSystem } from "../../engine/runtime/real-system.ts";

/** Resolves in the next turn of the event loop, so that other requests run in between. Virtual time has no turns. */
export function turn(): Promise<void> {
  return new Promise((resolve) => realSystem.soon(resolve));
}
