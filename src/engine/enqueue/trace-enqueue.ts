import type { EnqueueOptions } from "../../core/job/enqueue/envelope.ts";
import type { JobId } from "../../core/job/job.ts";
import type { JobDefinition } from "../../core/job/job-definition.ts";
import type { Tracing } from "../../ports/trace.ts";

type Enqueued = { readonly id: JobId } | readonly { readonly id: JobId }[];

/** Enqueues inside a span. The jobs carry its context in their meta, so that their attempts join the trace. */
export async function traced<Input, Done extends Enqueued>(
  tracing: Tracing,
  definition: JobDefinition<Input, unknown, unknown>,
  options: EnqueueOptions | undefined,
  count: number,
  enqueue: (options: EnqueueOptions) => Promise<Done>,
): Promise<Done> {
  const { type, queue } = definition;
  const trace = tracing.enqueue({ type, queue: options?.queue ?? queue, count, meta: options?.meta ?? {} });
  try {
    const done = await enqueue({ ...options, meta: { ...options?.meta, ...trace.meta } });
    trace.ended({ ids: [done].flat().map(({ id }) => id) });
    return done;
  } catch (error) {
    trace.ended({ error });
    throw error;
  }
}

interface Enqueueing {
  readonly definition: JobDefinition<unknown, unknown, unknown>;
  readonly options: EnqueueOptions;
}

/** The same for unrelated jobs of one call: each gets its own span. */
export async function tracedEach<Job extends Enqueueing, Done>(
  tracing: Tracing,
  jobs: readonly Job[],
  enqueue: (jobs: readonly Job[]) => Promise<Done>,
): Promise<Done> {
  const traces = jobs.map(({ definition: { type, queue }, options }) =>
    tracing.enqueue({ type, queue: options.queue ?? queue, count: 1, meta: options.meta ?? {} }),
  );
  const carrying = jobs.map((job, index) => {
    const meta = { ...job.options.meta, ...traces[index]?.meta };
    return { ...job, options: { ...job.options, meta } };
  });
  try {
    const done = await enqueue(carrying);
    for (const trace of traces) trace.ended({ ids: [] });
    return done;
  } catch (error) {
    for (const trace of traces) trace.ended({ error });
    throw error;
  }
}
