import { constant, defineJob } from "curfew";
import { z } from "zod";

export const renderReport = defineJob({
  type: "report.render",
  payload: z.object({ pages: z.int().positive() }),
  result: z.object({ pages: z.int() }),
  timeouts: { attempt: "5s", grace: "2s" },
  retry: { attempts: 2, backoff: constant({ first: "10ms", jitter: false }) },
});
