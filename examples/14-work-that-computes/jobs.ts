import { constant, defineJob } from "curfew";
import { z } from "zod";

export const countPrimes = defineJob({
  type: "primes.count",
  payload: z.object({ below: z.int().positive(), parts: z.int().positive() }),
  result: z.object({ primes: z.int() }),
  timeouts: { attempt: "3s", grace: "5s" },
  retry: { attempts: 2, backoff: constant({ first: "10ms", jitter: false }) },
});
