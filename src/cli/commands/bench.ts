import { type Command, InvalidArgumentError } from "commander";
import type { BenchOptions } from "../bench.ts";
import { withPage, withTarget } from "../declare.ts";
import { act, type TargetContext } from "../run-command.ts";

const upTo = (most: number) => (text: string) => {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < 1 || value > most)
    throw new InvalidArgumentError(`Write a whole number from 1 to ${most}.`);
  return value;
};

export function register(command: Command): void {
  command.description(
    "Measure how fast a store is: enqueue, work through, and how long an idle worker takes to start a job.",
  );
  withTarget(command)
    .option("--jobs <count>", "how many jobs to enqueue in batches and work through", upTo(1_000_000), 5_000)
    .option("--concurrency <count>", "how many jobs the worker runs at once", upTo(1_000), 50)
    .option("-y, --yes", "do not ask if the store has other jobs");
  withPage(command, {
    examples: [
      ["bench --store sqlite:bench.db", "about ten seconds"],
      ["bench --store postgres://localhost/app --jobs 20000 --yes", "beside the jobs of an application"],
    ],
    json: '{"store","jobs","concurrency","enqueue":{"per_second","p50_ms","p95_ms","p99_ms"},"batch":{"per_second"},"drain":{"per_second"},"pickup":{"p50_ms","p95_ms","p99_ms"},"left_behind"}',
    more: "It uses a queue of its own and deletes its jobs, also after Ctrl-C. If it is killed, its jobs end by their own timeouts.\nOther workers do not take them, but share the store with them. The statistics keep one more job type: curfew-bench.",
  });
  const run = async (context: TargetContext, options: BenchOptions) => {
    const { bench } = await import("../bench.ts");
    await bench(context, options);
  };
  act(command, run, undefined, { runsJobs: true });
}
