import { execFile, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { TcpProxy } from "../failover/proxy.ts";
import { createDatabase } from "../postgres.ts";

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
    const { stdout } = await run(process.execPath, [script.pathname, store, "close"], { timeout: 120_000 });
    expect(stdout).toBe("closed\n");
  });

  it("a process that closes its engine while PostgreSQL does not answer ends by itself", async () => {
    await using database = await createDatabase(inject("postgresUrl"));
    await using proxy = await TcpProxy.start(Number(new URL(database.url).port));
    const child = fork(script, [proxy.through(database.url), "close when told"]);
    await once(child, "message");
    proxy.vanish();
    child.send("close");
    const ended = once(child, "exit");
    const [left] = (await once(child, "message")) as [string[]];
    // A socket that is not destroyed keeps the process for 3 s, and one that is forgotten for ever.
    expect(left.filter((name) => /TCP|Timeout/.test(name))).toEqual([]);
    expect(await ended).toEqual([0, null]);
  });
});
