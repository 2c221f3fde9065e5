/**
 * The packed package, installed into an empty project, on the runtimes that it promises. `npm run test:runtimes` runs many
 * more programs on more stores.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, inject, it } from "vitest";
import {
  complaintOf,
  emptyProject,
  FIRST,
  installRuntimes,
  isNotThere,
  isUnreachable,
  pack,
  type Runtime,
  run,
} from "../../scripts/runtimes.ts";
import { createDatabase } from "../postgres.ts";

const runtimes: readonly Runtime[] = ["Node 22.14.0", "Node 24.21.0", "Node 26.10.0", "Bun 1.4.4"];
const stores = ["memory", "sqlite", "postgres"] as const;
/** What the README's first program and the stores need. Node 22.14 has no complete node:sqlite. */
const packages = ["zod", "pg@^8.16.0", "better-sqlite3@^13.0.0"];

const root = join(import.meta.dirname, "../..");

/** The project of a user, or null if npm does not reach what it needs. */
const folder = await prepare();

async function prepare(): Promise<string | null> {
  try {
    await installRuntimes(runtimes);
  } catch (error) {
    if (isUnreachable(error) || isNotThere(error)) return skip(runtimes.join(", "), error);
    throw error;
  }
  // `npm test` has built the package before.
  if (process.env.CURFEW_BUILT !== "1") await run("npm", ["run", "build"], { cwd: root });
  const packed = await mkdtemp(join(tmpdir(), "curfew-packed-"));
  try {
    return await emptyProject(await pack(packed), packages);
  } catch (error) {
    // A package that the registry does not have is a fault of the dependencies of curfew.
    if (isUnreachable(error)) return skip(packages.join(", "), error);
    throw error;
  } finally {
    await rm(packed, { recursive: true });
  }
}

function skip(wanted: string, error: unknown): null {
  const stderr = (error as { readonly stderr: string }).stderr.slice(0, 300);
  console.error(`SKIPPED: ${runtimes.length * stores.length} cases: npm cannot fetch ${wanted}:\n${stderr}`);
  return null;
}

afterAll(async () => {
  if (folder) await rm(folder, { recursive: true });
});

async function addressOf(
  project: string,
  store: (typeof stores)[number],
): Promise<AsyncDisposable & { url: string }> {
  if (store === "postgres") return createDatabase(inject("postgresUrl"));
  const file = join(project, "curfew.db");
  return {
    url: store === "memory" ? "memory:" : `sqlite:${file}`,
    [Symbol.asyncDispose]: async () => {
      for (const end of ["", "-wal", "-shm"]) await rm(`${file}${end}`, { force: true });
    },
  };
}

describe.skipIf(folder === null).each(runtimes)("the packed package on %s", (runtime) => {
  it.each(stores)("runs the first program of the README on %s", async (store) => {
    const project = folder as string;
    await using address = await addressOf(project, store);
    const program = join(project, `${FIRST}.mjs`);
    expect(await complaintOf(runtime, program, "ok", { STORE: address.url })).toBeUndefined();
  });
});
