import { processor } from "curfew";
import { renderReport } from "./jobs.ts";

/** A bug that shows itself on the first run only: a loop that never ends. */
function layOut(page: number, attempt: number): void {
  while (page === 3 && attempt === 1) page = 3;
}

/** The same processor that would run in the worker itself, in a module of its own. */
export default processor(renderReport, async ({ payload, attempt, lastCheckpoint, checkpoint, log }) => {
  const done = typeof lastCheckpoint === "number" ? lastCheckpoint : 0;
  log(`begins after page ${done}`);
  for (let page = done + 1; page <= payload.pages; page++) {
    layOut(page, attempt);
    await checkpoint(page);
  }
  return { pages: payload.pages };
});
