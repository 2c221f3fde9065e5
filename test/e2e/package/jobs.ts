import { defineJob } from "curfew";
import { z } from "zod";

export const work = defineJob({
  type: "package.work",
  payload: z.object({ isStuck: z.boolean(), at: z.iso.datetime().transform((text) => new Date(text)) }),
  result: z.object({ year: z.int() }),
  timeouts: { attempt: "1s", grace: "2s" },
  retry: { attempts: 1 },
});

export const follow = defineJob({ type: "package.follow", payload: z.object({ from: z.string() }) });
