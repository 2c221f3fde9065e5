import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { authenticate, authorize, createKey, hashKey, Keyring } from "../../src/server/access/auth.ts";
import { readKeyFile } from "../../src/server/access/key-file.ts";
import { type Right, ROLES } from "../../src/server/access/roles.ts";
import { refused } from "./refused.ts";

const system = (now = 0) => ({ now: () => now });
const bearer = (key: string) => `Bearer ${key}`;

describe("a key", () => {
  it("is 256 random bits, and only its hash can be kept", () => {
    const { key, hash } = createKey();
    expect(key).toMatch(/^curfew_[A-Za-z0-9_-]{43}$/);
    expect(hash).toBe(hashKey(key));
    expect(hash).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(hash).not.toContain(key.slice("curfew_".length));
    expect(createKey().key).not.toBe(key);
  });

  it("a key is found by its exact text only", () => {
    const mine = createKey();
    const keyring = new Keyring([{ name: "billing", role: "worker", hash: mine.hash }], system());
    expect(authenticate(keyring, bearer(mine.key))).toMatchObject({ name: "billing", role: "worker" });
    expect(authenticate(keyring, `bearer   ${mine.key}`)).toMatchObject({ name: "billing" });
    const wrong = [
      null,
      "",
      mine.key,
      bearer(createKey().key),
      bearer(`${mine.key}x`),
      bearer(mine.key.toLowerCase()),
      bearer(mine.hash),
      `Basic ${mine.key}`,
      bearer(`${mine.key} ${mine.key}`),
      bearer("x".repeat(100_000)),
    ];
    for (const authorization of wrong) {
      const error = refused(() => authenticate(keyring, authorization));
      expect(error).toMatchObject({ status: 401, code: "unauthorized" });
      expect(error.more.headers).toHaveProperty("WWW-Authenticate");
      expect(error.message).not.toContain(mine.key);
    }
  });

  it("a key is refused from notAfter on, and not before", () => {
    const { key, hash } = createKey();
    const notAfter = "2030-01-01T00:00:00Z";
    const keys = [{ name: "old", role: "admin", hash, notAfter }] as const;
    const at = Date.parse(notAfter);
    expect(new Keyring(keys, system(at - 1)).find(key)).toMatchObject({ name: "old" });
    expect(new Keyring(keys, system(at)).find(key)).toBe("expired");
  });

  it("two keys of one name overlap during a rotation", () => {
    const [old, next] = [createKey(), createKey()];
    const keyring = new Keyring([{ name: "web", role: "producer", hash: old.hash }], system());
    keyring.replace([
      { name: "web", role: "producer", hash: old.hash },
      { name: "web", role: "producer", hash: next.hash },
    ]);
    expect([keyring.find(old.key), keyring.find(next.key)]).toMatchObject([{ name: "web" }, { name: "web" }]);
    keyring.replace([{ name: "web", role: "producer", hash: next.hash }]);
    expect(keyring.find(old.key)).toBe("unknown");
    expect(keyring.find(next.key)).toMatchObject({ name: "web" });
  });

  it("replace() keeps the old keys if the new list is invalid", () => {
    const { key, hash } = createKey();
    const keyring = new Keyring([{ name: "web", role: "producer", hash }], system());
    expect(() => keyring.replace([{ name: "web", role: "boss" as "admin", hash }])).toThrow(
      /keys\[0\]\.role/,
    );
    expect(keyring.find(key)).toMatchObject({ name: "web" });
  });
});

describe("roles", () => {
  const rights: readonly Right[] = ["open", "read", "enqueue", "cancel", "work", "operate"];
  const expected = {
    producer: ["open", "read", "enqueue", "cancel"],
    worker: ["open", "read", "enqueue", "work"],
    "read-only": ["open", "read"],
    admin: rights,
  } as const;

  it.each(Object.keys(expected) as (keyof typeof expected)[])("%s may do this and nothing else", (role) => {
    const may = rights.filter((right) => {
      try {
        authorize({ name: "x", role, rate: undefined }, right);
        return true;
      } catch {
        return false;
      }
    });
    expect(may).toEqual(expected[role]);
    expect(Object.keys(ROLES)).toHaveLength(4);
  });

  it("a 403 names the role and the missing right", () => {
    const error = refused(() => authorize({ name: "web", role: "producer", rate: undefined }, "operate"));
    expect(error).toMatchObject({ status: 403, code: "forbidden" });
    expect(error.message).toBe("The key of web has the role producer, which may not operate");
  });
});

describe("keys that are written wrong", () => {
  const { key, hash } = createKey();
  const good = { name: "a", role: "admin", hash } as const;

  it.each([
    [
      "a role nobody knows",
      { ...good, role: "root" },
      /keys\[0\]\.role: "root".*producer, worker, read-only, admin/,
    ],
    ["no name", { ...good, name: "" }, /keys\[0\]\.name/],
    ["a short hash", { ...good, hash: "sha256:00" }, /keys\[0\]\.hash/],
    ["an unknown field", { ...good, secret: 1 }, /keys\[0\]\.secret/],
    ["a local time", { ...good, notAfter: "2030-01-01T00:00:00" }, /keys\[0\]\.notAfter/],
    ["a rate of 0", { ...good, rate: 0 }, /keys\[0\]\.rate/],
    ["no object", "a", /keys\[0\]/],
  ])("are refused: %s", (_what, entry, message) => {
    expect(() => new Keyring([entry as typeof good], system())).toThrow(message);
  });

  it("a duplicate key, too many keys and a non-list are refused", () => {
    expect(() => new Keyring([good, { ...good, name: "b" }], system())).toThrow(/keys\[1\]\.hash/);
    expect(() => new Keyring(new Array(1_001).fill(good), system())).toThrow(/at most 1000/);
    expect(() => new Keyring("keys" as unknown as [], system())).toThrow(/write a list/);
  });

  it("an error about a key in place of a hash does not repeat the key", () => {
    try {
      new Keyring([{ ...good, hash: key }], system());
      expect.fail("it was accepted");
    } catch (error) {
      expect((error as Error).message).not.toContain(key);
      expect((error as Error).message).toContain("a key itself");
    }
  });
});

describe("a file of keys", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "curfew-keys-"));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const write = (name: string, text: string, mode = 0o600) => {
    const path = join(folder, name);
    writeFileSync(path, text);
    chmodSync(path, mode);
    return path;
  };

  it("is read", async () => {
    const { key, hash } = createKey();
    const path = write("good.json", JSON.stringify({ keys: [{ name: "a", role: "admin", hash }] }));
    expect(new Keyring(await readKeyFile(path), system()).find(key)).toMatchObject({ role: "admin" });
  });

  it.each([0o644, 0o660, 0o602])("is refused when others can touch it: %o", async (mode) => {
    const path = write(`open-${mode}.json`, JSON.stringify({ keys: [] }), mode);
    await expect(readKeyFile(path)).rejects.toThrow(/chmod 600/);
  });

  it("a missing key file, or one with other content, is refused", async () => {
    await expect(readKeyFile(join(folder, "none.json"))).rejects.toThrow(/does not exist/);
    await expect(readKeyFile(write("text.json", "keys"))).rejects.toThrow(/is not JSON/);
    await expect(readKeyFile(write("null.json", "null"))).rejects.toThrow(/keys/);
    await expect(readKeyFile(write("list.json", "[]"))).rejects.toThrow(/keys/);
    await expect(readKeyFile(write("big.json", " ".repeat(1_000_001)))).rejects.toThrow(/1000001 bytes/);
  });
});
