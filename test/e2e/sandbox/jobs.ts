import { z } from "zod";
import { defineJob } from "../../../src/index.ts";

/** Its schema makes more of a payload than JSON can hold. */
export const greet = defineJob({
  type: "sandbox.greet",
  payload: z.object({
    at: z.iso.datetime().transform((text) => new Date(text)),
    times: z.int().positive().default(2),
  }),
  result: z.object({ year: z.int(), times: z.int() }),
  timeouts: { attempt: "10s", total: "1h" },
  retry: { attempts: 1 },
});

/** What `greet` enqueues; nobody works on it. */
export const follow = defineJob({
  type: "sandbox.follow",
  queue: "later",
  payload: z.object({ nth: z.int() }),
  priority: 7,
  timeouts: { wait: "30m" },
});
