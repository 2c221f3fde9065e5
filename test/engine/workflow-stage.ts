/** What the tests of workflows share: an engine with a worker for three kinds of steps. */

import type { JobRow } from "../../src/core/job/job.ts";
import { defineJob, type Processor, processor, unchecked } from "../../src/index.ts";
import { depthOf } from "../../src/testing/read-store.ts";
import { openStage, type Stage } from "./stage.ts";

export const echo = defineJob({ type: "wf.echo", payload: unchecked<string>(), result: unchecked<string>() });
export const fails = defineJob({ type: "wf.fails", payload: unchecked<string>(), retry: { attempts: 1 } });
export const waits = defineJob({ type: "wf.waits", payload: unchecked<string>(), timeouts: { grace: "1s" } });

interface Seen {
  readonly payload: string;
  readonly parents: unknown;
}

interface Opened {
  readonly stage: Stage;
  readonly seen: Seen[];
  /** The payloads of the handlers that were entered, in their order. */
  ran(): string[];
  live(): Promise<number>;
}

/** `more` are handlers for the same worker: of two workers on a queue, either may win a step that it has no handler for. */
export async function openWorkflows(
  options: { documentLimit?: number } = {},
  more: readonly Processor[] = [],
): Promise<Opened> {
  // An option of engines that their tests seldom need.
  const stage = await openStage(options as object);
  const seen: Seen[] = [];
  const see = (payload: string, parents: unknown) => void seen.push({ payload, parents });
  const processors: Processor[] = [
    processor(echo, ({ payload, parentResults }) => {
      see(payload, parentResults);
      return `${payload}!`;
    }),
    processor(fails, ({ payload, parentResults }) => {
      see(payload, parentResults);
      throw new Error("as told");
    }),
    processor(waits, ({ payload, parentResults, signal }) => {
      see(payload, parentResults);
      return new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    }),
    ...more,
  ];
  stage.work(processors, { queues: { default: { concurrency: 10 } } });
  return {
    stage,
    seen,
    ran: () => seen.map(({ payload }) => payload),
    live: async () => {
      const { available, active, pending, retryable, scheduled } = await depthOf(stage.engine.store);
      return available + active + pending + retryable + scheduled;
    },
  };
}

export const states = (rows: readonly (Pick<JobRow, "state"> | null)[]) => rows.map((row) => row?.state);
