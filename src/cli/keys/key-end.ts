import { parseInstant } from "../../core/time.ts";
import { realSystem } from "../../engine/runtime/real-system.ts";
import { CommandFailed } from "../exit.ts";

/** Refuses an end of a new key that is no instant, or that is over: nobody could use the key. */
export function checkKeyEnd(notAfter: string | undefined): void {
  if (notAfter === undefined) return;
  if (instantOf(notAfter) <= realSystem.wall())
    throw new CommandFailed("usage", `--not-after: ${notAfter} is over; the new key would never work`);
}

function instantOf(text: string): number {
  try {
    return parseInstant(text, "--not-after");
  } catch (cause) {
    const said = JSON.stringify(text.slice(0, 60));
    const message = `--not-after: ${said} is not an instant; write one such as 2030-01-31T12:00:00Z`;
    throw new CommandFailed("usage", message, { cause });
  }
}
