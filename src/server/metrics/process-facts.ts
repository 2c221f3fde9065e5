import { readFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { InstalledCopy, ProcessFacts } from "../../core/doctor/doctor-facts.ts";

/** Native modules of the SQLite drivers for Node, and the library of the system. */
const SQLITE_LIBRARY = /\/(?:better-sqlite3|sqlite3|libsql)\/.*\.node$|\/libsqlite3\.so/;
const WATCHED = ["better-sqlite3", "@opentelemetry/api"] as const;
/** Folders that are looked at. A larger tree is looked at in part: somebody waits for the answer. */
const MOST_FOLDERS = 5_000;

/** Searched once per process: a caller who asks again and again must not read thousands of folders each time. */
const searched = new Map<string, Promise<InstalledCopy[]>>();

/** What this process runs on. `root` is the folder whose node_modules is searched for second copies. */
export async function processFacts(root: string): Promise<ProcessFacts> {
  const copies = searched.get(root) ?? installedCopies(root);
  searched.set(root, copies);
  return {
    nodeVersion: process.versions.node,
    loadedSqlite: loadedSqlite(),
    copies: await copies,
  };
}

/** Native SQLite libraries that are mapped into this process (Linux only), and the one inside Node if it was loaded. */
function loadedSqlite(): string[] {
  const files = new Set<string>();
  for (const line of mappedFiles().split("\n")) {
    const path = line.slice(line.indexOf("/"));
    if (line.includes("/") && SQLITE_LIBRARY.test(path)) files.add(path);
  }
  const { moduleLoadList = [] } = process as { moduleLoadList?: readonly string[] };
  // The list names built-in modules that were loaded, such as "NativeModule sqlite".
  if (moduleLoadList.includes("NativeModule sqlite")) files.add("node:sqlite");
  return [...files].sort();
}

/** The kernel answers from memory, so this does not wait for a disk. */
function mappedFiles(): string {
  try {
    return readFileSync("/proc/self/maps", "utf8");
  } catch {
    return "";
  }
}

/** Finds nested copies of some packages, as npm and pnpm install them. Links are not followed, so no copy counts twice. */
async function installedCopies(root: string): Promise<InstalledCopy[]> {
  const copies: InstalledCopy[] = [];
  const folders = [join(root, "node_modules")];
  for (let looked = 0; looked < MOST_FOLDERS; looked++) {
    const folder = folders.shift();
    if (folder === undefined) break;
    for (const name of WATCHED) {
      const version = await versionOf(join(folder, name));
      if (version !== undefined) copies.push({ name, version, path: join(folder, name) });
    }
    for (const name of await subfolders(folder)) {
      const path = join(folder, name);
      const isGroup = name.startsWith("@") || name === ".pnpm";
      const packages = isGroup ? (await subfolders(path)).map((each) => join(path, each)) : [path];
      if (isGroup || !name.startsWith("."))
        folders.push(...packages.map((each) => join(each, "node_modules")));
    }
  }
  return copies;
}

async function subfolders(path: string): Promise<string[]> {
  try {
    return (await readdir(path, { withFileTypes: true }))
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  } catch {
    return [];
  }
}

async function versionOf(folder: string): Promise<string | undefined> {
  try {
    return (JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as { version: string }).version;
  } catch {
    return undefined;
  }
}
