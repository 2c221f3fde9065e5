import { execFile, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const run = promisify(execFile);
const script = new URL("./life/process.ts", import.meta.url);
let folder = "";

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "curfew-life-"));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

describe("how long a process lives (5.2)", () => {
  it.each(["memory:", "sqlite"])(
    "a process that only works stays alive, and SIGTERM drains it (%s)",
    async (kind) => {
      const store = kind === "sqlite" ? `sqlite:${join(folder, "life.db")}` : kind;
      const child = fork(script, [store, "work"], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
      await once(child, "message");
      child.disconnect();
      // A real wait: the point is that nothing but the open worker keeps the process alive meanwhile.
      await wait(1_500);
      expect(child.exitCode).toBeNull();
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      expect(await ended).toEqual([0, null]);
    },
  );

  it.each(["memory:", "sqlite"])("a process that has closed its engine ends by itself (%s)", async (kind) => {
    const store = kind === "sqlite" ? `sqlite:${join(folder, "life.db")}` : kind;
    const { stdout } = await run(process.execPath, [script.pathname, store, "close"], { timeout: 30_000 });
    expect(stdout).toBe("closed\n");
  });
});
