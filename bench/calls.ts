/**
 * `node bench/calls.ts [--calls 300000] [--rounds 9]`: what the limit of a call costs when nothing times out, in
 * microseconds of one core: the same function called plainly, under `within`, and as a defined call.
 */
import { parseArgs } from "node:util";
import { createCalls } from "../src/calls/index.ts";

const { values } = parseArgs({
  options: { calls: { type: "string", default: "300000" }, rounds: { type: "string", default: "9" } },
});
const count = Number(values.calls);
const calls = createCalls();
const work = async () => 1;
const defined = calls.defineCall({ name: "bench", attempt: "5s", run: work });
const ways: Record<string, () => Promise<unknown>> = {
  plain: work,
  within: () => calls.within({ attempt: "5s" }, work),
  "within, two limits": () => calls.within({ attempt: "5s", total: "20s" }, work),
  "within, all in words": () =>
    calls.within({ name: "bench", attempt: "5s", total: "20s", grace: "1s", mode: "discard" }, work),
  "within, fields": () => calls.within({ attempt: { seconds: 5 }, total: { seconds: 20 } }, work),
  "within, retries": () => calls.within({ attempt: "5s", total: "20s", retry: { attempts: 3 } }, work),
  "defined, own limit": () => defined(undefined, { attempt: "3s" }),
  defined: () => defined(undefined),
  "AbortSignal.timeout": () => {
    AbortSignal.timeout(5_000);
    return work();
  },
};

/** Microseconds of CPU per call, with 100 calls under way at once as in a server. */
async function measure(call: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  for (let done = 0; done < count; done += 100) {
    const under: Promise<unknown>[] = [];
    for (let index = 0; index < 100; index++) under.push(call());
    await Promise.all(under);
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}

const seen = new Map<string, number[]>(Object.keys(ways).map((name) => [name, []]));
for (let round = 0; round < Number(values.rounds); round++)
  for (const [name, call] of Object.entries(ways)) seen.get(name)?.push(await measure(call));
const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number;
const plain = median(seen.get("plain") as number[]);
for (const [name, all] of seen)
  console.log(
    `${name}: ${median(all).toFixed(2)} µs a call, ${(median(all) - plain).toFixed(2)} more than plain`,
  );
process.exit();
