/**
 * Middleware wraps every attempt, outer to inner: logging, tracing, measuring, a database transaction. It sees what
 * the handler returned and threw, and a TimeoutError when time is up, even if the handler does not listen.
 * Retry stays outside of all of it, so it cannot be registered in the wrong order.
 */
import { defineJob, type Middleware, processor, TimeoutError } from "curfew";
import { openTestEngine } from "curfew/testing";
import { z } from "zod";

const resize = defineJob({
  type: "image.resize",
  payload: z.object({ file: z.string(), hangs: z.boolean() }),
  timeouts: { attempt: "10s", grace: "2s" },
  retry: { attempts: 1 },
});

await using test = await openTestEngine();
const { engine } = test;

/** Says what happened and how long it took. Rethrow, or the attempt counts as a success. */
const logged: Middleware = async ({ type, attempt }, next) => {
  const from = test.now();
  const took = () => `${(test.now() - from) / 1000} s`;
  try {
    const result = await next();
    console.log(`[log]  ${type} #${attempt} done after ${took()}`);
    return result;
  } catch (error) {
    const what = error instanceof TimeoutError ? `out of time (${error.kind})` : "failed";
    console.log(`[log]  ${type} #${attempt} ${what} after ${took()}`);
    throw error;
  }
};

/** Opens something for the attempt and always closes it. */
const inTransaction: Middleware = async (_context, next) => {
  console.log("[tx]   begin");
  try {
    const result = await next();
    console.log("[tx]   commit");
    return result;
  } catch (error) {
    console.log("[tx]   rollback");
    throw error;
  }
};

engine.work({
  middleware: [logged, inTransaction], // logged is the outer one
  processors: [
    processor(resize, async ({ payload }) => {
      console.log(`[work] ${payload.file}`);
      const pace = payload.hangs ? 3_600_000 : 1_500;
      await new Promise<void>((resolve) => test.system.after(pace, resolve));
      return { resized: payload.file };
    }),
  ],
});

await engine.enqueue(resize, { file: "cat.png", hangs: false });
await test.advance("1m");
console.log();
await engine.enqueue(resize, { file: "huge.tiff", hangs: true });
await test.advance("1m");
