import { open } from "node:fs/promises";
import { CurfewError, refuse } from "../../core/errors.ts";
import { checkKeys, type KeyOptions } from "./auth.ts";

const LARGEST = 1_000_000;
const OTHERS = 0o077;

/**
 * Reads a file of keys: `{ "keys": [{ "name": …, "role": …, "hash": … }] }`. It holds hashes, not keys. But a user who can
 * write the file can add a key, so a file that other users can access is refused.
 */
export async function readKeyFile(path: string): Promise<readonly KeyOptions[]> {
  const text = await readPrivately(path);
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw wrong(path, `is not JSON (${(error as Error).message})`, { cause: error });
  }
  const keys = (content as { keys?: unknown } | null)?.keys;
  checkKeys(keys, `${path}: keys`);
  return keys as readonly KeyOptions[];
}

async function readPrivately(path: string): Promise<string> {
  const file = await open(path, "r").catch((error: NodeJS.ErrnoException) => {
    throw wrong(path, error.code === "ENOENT" ? "does not exist" : `cannot be read (${error.code})`, {
      cause: error,
    });
  });
  try {
    const { mode, size } = await file.stat();
    // Windows has no mode bits; there the folder's permissions protect the file.
    if (process.platform !== "win32" && (mode & OTHERS) !== 0) {
      const shown = `0${(mode & 0o777).toString(8)}`;
      throw wrong(
        path,
        `has the mode ${shown}, so other users of this machine can access it; run chmod 600 ${path}`,
      );
    }
    if (size > LARGEST) throw refuse("too_large", path, `${size} bytes`, `keep it under ${LARGEST} bytes`);
    return await file.readFile("utf8");
  } finally {
    await file.close();
  }
}

function wrong(path: string, what: string, caught?: { readonly cause: unknown }): CurfewError {
  return new CurfewError("invalid_option", `keys: the file ${path} ${what}`, { field: "keys", ...caught });
}
