import { chmodSync, mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { RunningCommand, server } from "../server/command.ts";
import { fileFolder } from "../support/folders.ts";
import { type Answer, answer, curfew } from "./stage.ts";

const folder = fileFolder();
let files = 0;

/** A key file with a worker's key and an admin's key. */
async function keyFile() {
  const file = join(folder, `keys-${files++}.json`);
  const worker = await answer(["keys", "new", "--role", "worker", "--name", "mailer", "--file", file]);
  const admin = await answer(["keys", "new", "--role", "admin", "--name", "mia", "--file", file]);
  return { file, worker: String(worker.key), admin: String(admin.key) };
}

const listed = async (file: string) =>
  (await answer(["keys", "ls", "--file", file])) as Answer & { items: Answer[] };

describe("keys new", () => {
  it.each([
    [
      "an end that is over",
      ["mia", "--not-after", "2001-01-01T00:00:00Z"],
      /--not-after: .* would never work/,
    ],
    [
      "an end that is no instant",
      ["mia", "--not-after", "soon"],
      /--not-after: "soon" is not an instant; write/,
    ],
    ["a name that is none", ["a b"], /--name: "a b" is not a valid name/],
  ])("refuses %s by the flag, and writes nothing", async (_name, flags, says) => {
    const { file } = await keyFile();
    const before = readFileSync(file, "utf8");
    const ended = await curfew(["keys", "new", "--role", "worker", "--file", file, "--name", ...flags]);
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr).toMatch(says);
    expect(readFileSync(file, "utf8")).toBe(before);
  });
});

describe("keys ls", () => {
  it("shows names, roles and ids, and neither keys nor whole hashes", async () => {
    const { file, worker } = await keyFile();
    const { stdout } = await curfew(["keys", "ls", "--file", file]);
    expect(stdout).toMatch(/^ID +NAME +ROLE +TENANT +VALID/);
    expect(stdout).toMatch(/^[0-9a-f]{12} +mailer +worker +\S+ +no end/m);
    const { items: keys } = await listed(file);
    expect(keys).toMatchObject([{ name: "mailer", not_after: null, is_expired: false }, { name: "mia" }]);
    for (const text of [stdout, JSON.stringify(keys)]) {
      expect(text).not.toContain(worker);
      expect(text).not.toMatch(/[0-9a-f]{64}/);
    }
  });

  it("without a file reads keys.json of the folder, or says how to make the first key", async () => {
    const cwd = mkdtempSync(join(folder, "home-"));
    const none = await new RunningCommand(["keys"], { cwd }).ended;
    expect(none).toMatchObject({ code: 2, stdout: "" });
    expect(none.stderr).toMatch(
      /which key file\? .* curfew keys new --name <name> --role admin --file keys.json/,
    );
    await answer(["keys", "new", "--role", "admin", "--name", "mia", "--file", join(cwd, "keys.json")]);
    const listed = await new RunningCommand(["keys"], { cwd }).ended;
    expect(listed.stdout).toMatch(/ mia +admin /);
  });

  it("takes the file from the environment", async () => {
    const { file } = await keyFile();
    expect((await curfew(["keys", "ls"], { CURFEW_KEYS: file })).code).toBe(0);
  });

  it.each([
    ["is not there", () => {}, /does not exist/],
    ["others can touch", (file: string) => chmodSync(file, 0o644), /chmod 600/],
  ])("refuses a file that %s", async (name, harm, says) => {
    const { file } = await keyFile();
    harm(file);
    const path = name === "is not there" ? `${file}.no` : file;
    const ended = await curfew(["keys", "ls", "--file", path]);
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr).toMatch(says);
  });
});

describe("keys rotate", () => {
  it("makes a key that works beside the old one until the overlap ends", async () => {
    const { file, admin } = await keyFile();
    const running = await server(["--store", "memory:", "--keys", file], { cwd: folder });
    const rotated = await answer(["keys", "rotate", "mia", "--file", file, "--overlap", "1h"]);
    expect(rotated).toMatchObject({
      name: "mia",
      role: "admin",
      replaced: [{ not_after: expect.any(String) }],
    });
    expect(readFileSync(file, "utf8")).not.toContain(String(rotated.key));
    running.kill("SIGHUP");
    await running.said(/keys were read again|keys=3/);
    for (const key of [admin, String(rotated.key)])
      expect(
        (await curfew(["queues", "pause", "mail", "--url", running.url], { CURFEW_KEY: key })).code,
      ).toBe(0);
  });

  it("ends the old key at once with an overlap of 0s, and rm --expired removes it", async () => {
    const { file } = await keyFile();
    const { replaced } = (await answer([
      "keys",
      "rotate",
      "mailer",
      "--file",
      file,
      "--overlap",
      "0s",
    ])) as Answer & {
      replaced: Answer[];
    };
    expect((await listed(file)).items.filter(({ is_expired }) => is_expired)).toMatchObject([
      { id: replaced[0]?.id },
    ]);
    const { removed } = await answer(["keys", "rm", "--expired", "--yes", "--file", file]);
    expect(removed).toMatchObject([{ id: replaced[0]?.id }]);
    expect((await listed(file)).items).toHaveLength(2);
  });

  it("keeps the rate and the earlier end of the old key, and warns that the new one has none", async () => {
    const { file } = await keyFile();
    const end = "2099-01-01T00:00:00.000Z";
    await answer(["keys", "new", "--role", "worker", "--name", "short", "--not-after", end, "--file", file]);
    const { stdout } = await curfew(["keys", "rotate", "short", "--file", file, "--overlap", "1h"]);
    expect(stdout).toContain("The new key has no end, and the old one had one");
    const { items: keys } = await listed(file);
    expect(String(keys.find(({ name }) => name === "short")?.not_after) < end).toBe(true);
  });

  it.each([
    ["an unknown name", ["mailr"], 1, /has no key "mailr"; did you mean "mailer"\?/],
    ["an overlap that is none", ["mailer", "--overlap", "soon"], 2, /--overlap: "soon"/],
    ["an end that is over", ["mailer", "--not-after", "2001-01-01T00:00:00Z"], 2, /would never work/],
  ])("refuses %s and changes nothing", async (_name, flags, code, says) => {
    const { file } = await keyFile();
    const before = readFileSync(file, "utf8");
    const ended = await curfew(["keys", "rotate", ...flags, "--file", file]);
    expect(ended.stderr).toMatch(says);
    expect(ended).toMatchObject({ code, stdout: "" });
    expect(readFileSync(file, "utf8")).toBe(before);
  });

  it("refuses a name that has keys of several roles", async () => {
    const { file } = await keyFile();
    await answer(["keys", "new", "--role", "producer", "--name", "mia", "--file", file]);
    const { code, stderr } = await curfew(["keys", "rotate", "mia", "--file", file]);
    expect(code).toBe(1);
    expect(stderr).toContain("name one by its id");
    const id = String((await listed(file)).items.find(({ role }) => role === "producer")?.id);
    expect(await answer(["keys", "rotate", id, "--file", file])).toMatchObject({ role: "producer" });
  });
});

describe("keys rm", () => {
  it("removes by id, and asks first", async () => {
    const { file } = await keyFile();
    const id = String((await listed(file)).items[0]?.id);
    const asked = await curfew(["keys", "rm", id, "--file", file]);
    expect(asked.code).toBe(2);
    expect(asked.stderr).toContain("pass --yes");
    expect(await answer(["keys", "rm", id, "--yes", "--file", file])).toMatchObject({
      removed: [{ name: "mailer" }],
    });
    expect((await listed(file)).items).toMatchObject([{ name: "mia" }]);
  });

  it("wants to know which keys", async () => {
    const { file } = await keyFile();
    expect((await curfew(["keys", "rm", "--file", file])).code).toBe(2);
  });
});
