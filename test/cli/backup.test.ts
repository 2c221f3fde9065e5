import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { defineJob, openEngine } from "../../src/index.ts";
import { fileFolder } from "../support/folders.ts";
import { answer, curfew } from "./stage.ts";

const job = defineJob({ type: "mail.send" });

const folder = fileFolder();

const at = (name: string) => join(folder, name);

describe("curfew backup and restore", () => {
  it("copy a store in use, and bring it back as it was", async () => {
    const store = `sqlite:${at("jobs.db")}`;
    const engine = await openEngine({ store });
    const { id } = await engine.enqueue(job);
    const { stdout } = await curfew(["backup", at("copy.db"), "--store", store]);
    expect(stdout).toMatch(/copy\.db: \d+ kB, a copy of .*jobs\.db\.\n/);
    await engine.enqueue(job);
    const busy = await curfew(["restore", at("copy.db"), "--store", store, "--yes"]);
    expect(busy.code).toBe(3);
    expect(busy.stdout).toBe("");
    await engine.close();
    expect(await answer(["restore", at("copy.db"), "--store", store, "--yes"])).toMatchObject({
      kept: `${at("jobs.db")}.before-restore`,
    });
    expect(await answer(["ls", "--store", store])).toMatchObject({ items: [{ id }], has_more: false });
    const old = await answer(["ls", "--store", `sqlite:${at("jobs.db")}.before-restore`]);
    expect(old.items).toHaveLength(2);
  });

  it("restore asks before it replaces a store, and not where there is none", async () => {
    const store = `sqlite:${at("asked.db")}`;
    await curfew(["migrate", "--store", store]);
    await answer(["backup", at("asked-copy.db"), "--store", store]);
    const asked = await curfew(["restore", at("asked-copy.db"), "--store", store]);
    expect(asked).toMatchObject({ code: 2, stdout: "" });
    expect(asked.stderr).toMatch(/Replace .*asked\.db by .* pass --yes/);
    const anew = `sqlite:${at("anew.db")}`;
    expect(await answer(["restore", at("asked-copy.db"), "--store", anew])).toMatchObject({ kept: null });
    expect((await curfew(["ls", "--store", anew])).code).toBe(0);
  });

  it("refuse what cannot be copied, and leave nothing behind", async () => {
    const store = `sqlite:${at("real.db")}`;
    await curfew(["migrate", "--store", store]);
    writeFileSync(at("taken.db"), "taken");
    writeFileSync(at("text.db"), "hello ".repeat(200));
    const attempts: readonly (readonly [readonly string[], number, RegExp])[] = [
      [["backup", at("taken.db"), "--store", store], 2, /taken\.db exists already; name another file/],
      [["backup", at("x.db"), "--store", `sqlite:${at("no.db")}`], 3, /there is no such file/],
      [["backup", at("x.db"), "--store", "postgres://localhost/app"], 2, /pg_dump/],
      [["backup", at("no/x.db"), "--store", store], 3, /there is no folder/],
      [["restore", at("no.db"), "--store", store, "--yes"], 2, /there is no such file/],
      [["restore", at("text.db"), "--store", store, "--yes"], 3, /not a SQLite database/],
      [["restore", at("real.db"), "--store", store, "--yes"], 2, /name another file/],
    ];
    for (const [flags, code, says] of attempts) {
      const ended = await curfew(flags);
      expect(ended.stderr).toMatch(says);
      expect(ended).toMatchObject({ code, stdout: "" });
    }
    expect(existsSync(at("x.db"))).toBe(false);
    expect((await curfew(["ls", "--store", store])).code).toBe(0);
  });
});
