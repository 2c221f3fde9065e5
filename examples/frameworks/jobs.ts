/** What the server and the worker of every framework here share. */
import { setTimeout as sleep } from "node:timers/promises";
import { defineJob, processor } from "curfew";
import { z } from "zod";

export const welcome = defineJob({
  type: "mail.welcome",
  queue: "mail",
  payload: z.object({ to: z.email(), takes: z.int().max(10_000).default(0) }),
  result: z.object({ sent: z.string() }),
  timeouts: { attempt: "30s", total: "1h" },
});

export const processors = [
  processor(welcome, async ({ payload, signal }) => {
    // Stands for a slow mail server. The signal ends the wait when time is up or the process stops.
    await sleep(payload.takes, undefined, { signal });
    return { sent: `mail to ${payload.to}` };
  }),
];
