/** Runs in a sandbox of its own: the worker kills the process when the time is up, and shows where it hung. */
import { processor } from "../engine/attempt/processor.ts";
import { render } from "./jobs.ts";

/** The bug of this demo: a table that does not fit on its page is moved to the next one, for ever. */
function placeTables(page: number, isBroken: boolean): number {
  let moved = 0;
  do moved = (moved + page) % 1_000_003;
  while (isBroken);
  return moved;
}

function layOut(page: number, isBroken: boolean): number {
  return placeTables(page, isBroken);
}

// biome-ignore lint/style/noDefaultExport: a sandbox loads the default export of its module.
export default processor(render, async ({ payload, attempt, lastCheckpoint, progress, checkpoint, log }) => {
  const { pages, brokenPage, loops } = payload;
  const done = typeof lastCheckpoint === "number" ? lastCheckpoint : 0;
  log(done === 0 ? "rendering begins" : `goes on after page ${done}`, { pages, attempt });
  for (let page = done + 1; page <= pages; page++) {
    progress(page / pages, `page ${page} of ${pages}`);
    layOut(page, page === brokenPage && attempt <= loops);
    await checkpoint(page);
  }
  return { pages, file: `reports/${payload.customer}.pdf` };
});
