import { join } from "node:path";
import { expect, it } from "vitest";
import { fileFolder } from "../support/folders.ts";
import { FLOODS, runFlood } from "./attack/floods.ts";
import { sendEach } from "./attack/run.ts";

/** Six times what `npm run attack` allows: other work on the machine slows every instruction. */
const LONGEST_BLOCK = 300;
const MOST_MEMORY = 512_000_000;
/** A tenth of what `npm run attack` sends. */
const SCALE = 0.3;

const folder = fileFolder();

it("no request of up to 1 MB blocks the event loop for long", async () => {
  const results = await sendEach("memory:", 2);
  expect(results.length).toBeGreaterThan(50);
  expect(results.filter(({ longest }) => longest > LONGEST_BLOCK)).toEqual([]);
  expect(results.filter(({ status }) => status >= 500)).toEqual([]);
});

it.each(FLOODS.map((flood) => [flood.name, flood] as const))(
  "%s: the server stays under 512 MB",
  async (name, flood) => {
    const { peak } = await runFlood(flood, `sqlite:${join(folder, `${name}.db`)}`, SCALE);
    expect(peak).toBeLessThan(MOST_MEMORY);
  },
);
