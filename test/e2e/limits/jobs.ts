import { constant, defineJob, unchecked } from "../../../src/index.ts";

const common = {
  payload: unchecked<number>(),
  // A worker that gets no CPU for this long loses its place while its handler is inside. So does one that was killed.
  timeouts: { attempt: "30s", heartbeat: "10s" },
  retry: { attempts: 50, backoff: constant({ first: "20ms" }) },
} as const;

export const PLACES = 2;
export const PACE = { limit: 4, per: 1_500 };
export const QUEUE_PLACES = 3;

/** At most two at once, over all processes. */
export const placesJob = defineJob({
  type: "limits.places",
  ...common,
  limit: { key: "places", concurrency: PLACES },
});

/** At most `limit` starts in any span. */
export const paceJob = defineJob({
  type: "limits.pace",
  ...common,
  limit: { key: "pace", rate: { limit: PACE.limit, per: `${PACE.per}ms` } },
});

/** Its queue has a concurrency of its own. */
export const queueJob = defineJob({ type: "limits.queue", ...common, queue: "narrow" });
