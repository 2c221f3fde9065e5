import { fork } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { openEngine, silentLogger } from "../../src/index.ts";
import { double, plain } from "./results/jobs.ts";
import { storeAddresses } from "./support/addresses.ts";
import { killChild } from "./support/kill-child.ts";
import { program } from "./support/program.ts";

const WORKER = program(new URL("./results/worker-process.ts", import.meta.url));
const NUMBERS = Array.from({ length: 30 }, (_, index) => index);
const DOUBLED = NUMBERS.map((number) => number * 2);
const { sqliteAddress, postgresAddress } = storeAddresses("results");

describe("9 results of quick jobs with retention 0, from another process", () => {
  it.each([
    ["SQLite", sqliteAddress],
    ["PostgreSQL", postgresAddress],
  ])("on %s every caller gets its result", async (_, address) => {
    const store = await address();
    const child = fork(WORKER, [store], { execArgv: [] });
    const engine = await openEngine({ store, logger: silentLogger });
    try {
      await once(child, "message");
      const handles = await engine.enqueueMany(double, NUMBERS);
      expect(await Promise.all(handles.map((handle) => handle.result({ within: "1m" })))).toEqual(DOUBLED);
      for (const number of NUMBERS.slice(0, 10))
        expect(await (await engine.enqueue(double, number)).result({ within: "1m" })).toBe(number * 2);
      const requests = NUMBERS.map((number) => engine.request(plain, number, { within: "1m" }));
      expect(await Promise.all(requests)).toEqual(DOUBLED);
    } finally {
      await killChild(child);
      await engine.close();
    }
  });
});
