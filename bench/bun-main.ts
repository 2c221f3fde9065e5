/** The process of a Host for a contender that runs under Bun, which cannot load the drivers of the others. */
import { bunqueue } from "./contenders/bunqueue.ts";
import type { Answer, Command, HostOptions } from "./host.ts";
import { ServerMeter } from "./measure.ts";
import { bulk, drain10, drain100, single } from "./throughput.ts";

const options = JSON.parse(process.argv[2] as string) as HostOptions;
const workload = [bulk, single, drain10, drain100].find(({ name }) => name === options.workload);
const meter = new ServerMeter(undefined);

async function answer(command: Command): Promise<Answer> {
  try {
    if (!workload) return { error: `it is not measured with ${options.workload}` };
    if (command === "setUp") return { figures: {} };
    const context = { ...options, contender: bunqueue, meter, analyze: async () => {} };
    return { figures: await workload.sample(context) };
  } catch (error) {
    return { error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

process.on("message", async (command: Command) => process.send?.(await answer(command)));
// Whoever asks is gone.
process.on("disconnect", () => process.exit());
