import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { refuseOldNode } from "../src/core/node-version.ts";
import { CurfewError, openEngine } from "../src/index.ts";
import type { Store } from "../src/ports/store.ts";

describe("opening an engine", () => {
  it.each(["20.20.2", "22.13.1", "18.0.0"])("says in one sentence that Node %s is too old", (version) => {
    expect(() => refuseOldNode(version)).toThrow(`curfew needs Node 22.14 or newer; this is Node ${version}`);
  });

  it.each(["22.14.0", "24.21.0", "26.0.0"])("runs on Node %s", (version) => {
    expect(() => refuseOldNode(version)).not.toThrow();
  });

  it.each([
    ["redis://ann:secret@h?durable=1", /store: "redis:\/\/\*\*\*@h\?durable=1".*use durability/],
    ["mysql://ann:secret@db/x", /store: "mysql:\/\/\*\*\*@db\/x".*write "memory:"/],
    ["", /store: "".*write "memory:"/],
    [7 as unknown as string, /store: 7.*write "memory:"/],
  ])("refuses the store %j, naming it without its password", async (store, message) => {
    await expect(openEngine({ store })).rejects.toThrow(message);
  });

  it("refuses an option it does not know", async () => {
    const options = { store: "memory:", concurency: 5 } as { store: string };
    await expect(openEngine(options)).rejects.toThrow(/options\.concurency.*use one of store/);
  });

  it("gives up on a database that does not answer within openWithin, and says what failed", async () => {
    const opening = openEngine({ store: "postgres://nobody@127.0.0.1:1/none", openWithin: "250ms" });
    await expect(opening).rejects.toMatchObject({ code: "store_failed" });
  });

  it("does not wait for an answer that is final", async () => {
    const folder = await mkdtemp(join(tmpdir(), "curfew-open-"));
    const file = join(folder, "text.db");
    await writeFile(file, "this is not a database, and waiting will not make it one".repeat(50));
    await expect(openEngine({ store: `sqlite:${file}`, openWithin: "1h" })).rejects.toBeInstanceOf(
      CurfewError,
    );
    await rm(folder, { recursive: true });
  });

  it("leaves a store that was handed in to its owner when the engine cannot open", async () => {
    let closes = 0;
    const store = {
      clock: () => Promise.reject(new Error("no clock")),
      close: async () => {
        closes += 1;
      },
    } as unknown as Store;
    await expect(openEngine({ store })).rejects.toThrow("no clock");
    expect(closes).toBe(0);
  });
});
