import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import { checkKeys, createKey, type KeyOptions } from "../server/auth.ts";
import { readKeyFile } from "../server/key-file.ts";
import type { Role } from "../server/roles.ts";
import { dim, paint } from "./output/paint.ts";

export interface NewKeyOptions {
  readonly role: string;
  readonly name: string;
  readonly notAfter?: string;
  readonly file?: string;
  readonly json?: boolean;
}

/** Makes a key and prints it; it cannot be printed again. */
export async function newKey({ role, name, notAfter, file, json }: NewKeyOptions): Promise<void> {
  const { key, hash } = createKey();
  const entry: KeyOptions = { name, role: role as Role, hash, ...(notAfter !== undefined && { notAfter }) };
  checkKeys([entry], "keys");
  if (file !== undefined) await addToFile(file, entry);
  if (json) {
    console.log(JSON.stringify({ key, ...entry }));
    return;
  }
  console.log(`${dim("key  ")} ${paint("green", key)}`);
  console.log(`${dim("hash ")} ${hash}`);
  console.log("");
  console.log(`Hand the key to ${name} now: it is not stored and cannot be shown again.`);
  if (file === undefined) {
    console.log('Add this to the list in a key file ({ "keys": [ … ] }, mode 600):');
    console.log(`  ${JSON.stringify(entry)}`);
  } else console.log(`Its hash was added to ${file}. A running server reads the file again on SIGHUP.`);
}

/** Writes a new file and renames it, so that a server never reads half of it. */
async function addToFile(path: string, entry: KeyOptions): Promise<void> {
  const keys = existsSync(path) ? await readKeyFile(path) : [];
  const all = [...keys, entry];
  checkKeys(all, `${path}: keys`);
  const draft = `${path}.${randomBytes(6).toString("hex")}`;
  try {
    await writeFile(draft, `${JSON.stringify({ keys: all }, null, 2)}\n`, { mode: 0o600, flag: "wx" });
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}
