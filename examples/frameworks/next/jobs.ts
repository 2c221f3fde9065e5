import { defineJob, processor } from "curfew";
import { z } from "zod";

export const welcome = defineJob({
  type: "mail.welcome",
  queue: "mail",
  payload: z.object({ to: z.email() }),
  result: z.object({ sent: z.string() }),
  timeouts: { attempt: "10s", total: "1h" },
});

export const processors = [processor(welcome, ({ payload }) => ({ sent: `mail to ${payload.to}` }))];
