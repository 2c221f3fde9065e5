/**
 * A queue that may not grow without end: a warning at three waiting jobs, a refusal at five, and the choice to drop
 * what has waited longest instead.
 */
import { defineJob, openEngine, QueueFullError, unchecked } from "curfew";

const resize = defineJob({ type: "image.resize", payload: unchecked<string>(), queue: "images" });
const engine = await openEngine({ store: "memory:" });

engine.on("queue.pressure", ({ queue, waiting, most }) => {
  console.log(`warning: ${waiting} of ${most} places in ${queue} are taken`);
});

await engine.queues.configure("images", { depth: { most: 5, warnAt: 3 } });
for (let nth = 1; nth <= 6; nth++) {
  try {
    await engine.enqueue(resize, `cat-${nth}.jpg`);
    console.log(`cat-${nth}.jpg is in`);
  } catch (error) {
    if (!(error instanceof QueueFullError)) throw error;
    console.log(`${error.code}: ${error.queue} holds ${error.most}; try again in ${error.retryAfter} ms`);
  }
}

await engine.queues.configure("images", { depth: { most: 5, onFull: "drop-oldest" } });
await engine.enqueue(resize, "cat-7.jpg");
const [dropped] = (await engine.find({ queue: "images", state: "discarded" })).jobs;
console.log(`${dropped?.payload} made room: ${dropped?.errors[0]?.message}`);
console.log(`waiting: ${(await engine.queues.depth("images")).available}`);

await engine.close();
