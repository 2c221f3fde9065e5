import { CurfewError } from "../../core/errors.ts";
import { checkKeys, createKey, type KeyOptions } from "../../server/access/auth.ts";
import type { Role } from "../../server/access/roles.ts";
import { dim, paint } from "../output/paint.ts";
import { checkKeyEnd } from "./key-end.ts";
import { changeKeyFile } from "./key-files.ts";

export interface NewKeyOptions {
  readonly role: string;
  readonly name: string;
  readonly notAfter?: string;
  readonly tenant?: readonly string[];
  readonly file?: string;
  readonly json?: boolean;
}

/** Makes a key and prints it; it cannot be printed again. */
export async function newKey(options: NewKeyOptions): Promise<void> {
  const { role, name, notAfter, tenant, file, json } = options;
  checkKeyEnd(notAfter);
  const { key, hash } = createKey();
  const entry: KeyOptions = {
    name,
    role: role as Role,
    hash,
    ...(notAfter !== undefined && { notAfter }),
    ...(tenant && { tenant: tenant.length === 1 ? (tenant[0] as string) : tenant }),
  };
  checkEntry(entry);
  if (file !== undefined) await changeKeyFile(file, (keys) => [...keys, entry], { mayBeMissing: true });
  if (json) {
    const end = notAfter !== undefined && { not_after: notAfter };
    console.log(JSON.stringify({ key, name, role, hash, ...end, ...(tenant && { tenant: entry.tenant }) }));
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

/** Refuses it by the flag, not by a place in a file that the key is not in. */
function checkEntry(entry: KeyOptions): void {
  try {
    checkKeys([entry], "keys");
  } catch (error) {
    if (!(error instanceof CurfewError)) throw error;
    throw new CurfewError(error.code, error.message.replace("keys[0].", "--"), { cause: error });
  }
}
