import { appendFile, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as pause, setTimeout as sleep } from "node:timers/promises";
import { type CleanupHook, type Json, processor } from "curfew";
import { countPrimes } from "./jobs.ts";

function primesBetween(from: number, to: number): number {
  let primes = 0;
  for (let number = Math.max(2, from); number < to; number++) {
    let divisor = 2;
    while (divisor * divisor <= number && number % divisor !== 0) divisor++;
    if (divisor * divisor > number) primes++;
  }
  return primes;
}

const draftOf = (id: string, attempt: number) => join(tmpdir(), `primes-${id}-${attempt}.draft`);

/** A checkpoint is JSON that an earlier version of this code may have written: look before use. */
function stateOf(checkpoint: Json | undefined): { done: number; primes: number } {
  const { done, primes } = (checkpoint ?? {}) as { done?: unknown; primes?: unknown };
  return typeof done === "number" && typeof primes === "number" ? { done, primes } : { done: 0, primes: 0 };
}

export default processor(countPrimes, async (context) => {
  const { id, attempt, payload, signal, checkpoint, lastCheckpoint, progress, log } = context;
  const draft = draftOf(id, attempt);
  let { done, primes } = stateOf(lastCheckpoint);
  log(`begins after part ${done}`);
  while (done < payload.parts) {
    const size = payload.below / payload.parts;
    primes += primesBetween(Math.floor(done * size), Math.floor((done + 1) * size));
    done += 1;
    await appendFile(draft, `${done}: ${primes}\n`);
    await checkpoint({ done, primes }); // durable: what follows may be killed at any moment
    progress(done / payload.parts);
    await pause(); // a loop that never pauses hears no signal
    signal.throwIfAborted();
    if (attempt === 1 && done === 4) await sleep(60_000, undefined, { signal }); // as if the rest took too long
  }
  // Nobody sees a file that is half written: it is there under its name when it is whole.
  await rename(draft, draft.replace(".draft", ".txt"));
  await rm(draft.replace(".draft", ".txt"));
  return { primes };
});

/** Runs at the signal of each attempt, beside the work. */
export const onCleanup: CleanupHook<typeof countPrimes> = async ({ id, attempt, log }) => {
  log("cleans up");
  await rm(draftOf(id, attempt), { force: true });
};
