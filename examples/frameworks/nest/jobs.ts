import { defineJob } from "curfew";
import { z } from "zod";

/** What the controller, the processor and the tests share. */
export const welcome = defineJob({
  type: "mail.welcome",
  queue: "mail",
  payload: z.object({ to: z.email(), takes: z.int().max(10_000).default(0) }),
  result: z.object({ sent: z.string() }),
  timeouts: { attempt: "30s", total: "1h" },
});
