import { rm } from "node:fs/promises";
import { afterAll, beforeAll } from "vitest";
import { fetchPgBouncer } from "../failover/pgbouncer.ts";

/** Fetches pgbouncer for the tests of a `describe`. Its folder is undefined where Debian cannot be reached. */
export function usePgBouncer(): { readonly folder: string | undefined } {
  const fetched: { folder: string | undefined } = { folder: undefined };
  beforeAll(async () => {
    fetched.folder = await fetchPgBouncer();
    if (fetched.folder === undefined)
      console.warn("SKIPPED: pgbouncer cannot be fetched from Debian, so no pooler is tested");
  });
  afterAll(async () => {
    if (fetched.folder !== undefined) await rm(fetched.folder, { recursive: true });
  });
  return fetched;
}
