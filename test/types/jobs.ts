import { z } from "zod";
import { defineJob } from "../../src/index.ts";

export const charge = defineJob({
  type: "card.charge",
  payload: z.object({ orderId: z.string(), cents: z.string().transform(Number) }),
  result: z.object({ receipt: z.string() }),
});
export const plain = defineJob({ type: "plain.job" });
export const optional = defineJob({
  type: "optional.job",
  payload: z.object({ nth: z.number() }).optional(),
});
