import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import { checkKeys, type KeyOptions } from "../../server/access/auth.ts";
import { readKeyFile } from "../../server/access/key-file.ts";
import { CommandFailed } from "../exit.ts";

/**
 * Changes a key file. The new file replaces the old one in one step, so a server never reads half of it. A missing file
 * is created only where the caller allows it.
 */
export async function changeKeyFile(
  path: string,
  change: (keys: readonly KeyOptions[]) => readonly KeyOptions[],
  { mayBeMissing = false }: { readonly mayBeMissing?: boolean } = {},
): Promise<void> {
  const keys = mayBeMissing && !existsSync(path) ? [] : await readKeyFile(path);
  const changed = change(keys);
  checkKeys(changed, `${path}: keys`);
  const draft = `${path}.${randomBytes(6).toString("hex")}`;
  try {
    await writeFile(draft, `${JSON.stringify({ keys: changed }, null, 2)}\n`, { mode: 0o600, flag: "wx" });
    if (keys.length > 0 && JSON.stringify(await readKeyFile(path)) !== JSON.stringify(keys))
      throw new CommandFailed("failed", `${path}: another process changed it during this command; try again`);
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}
