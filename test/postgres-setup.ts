import type { TestProject } from "vitest/node";
import { memoryFolder, startPostgres, type TestPostgres } from "./postgres.ts";

declare module "vitest" {
  interface ProvidedContext {
    postgresUrl: string;
  }
}

/**
 * Several projects need PostgreSQL and each loads its own copy of this file, so the one server is kept where
 * all of them see it. It starts with the first project that has tests to run and stops after the last. Its files are in
 * memory where there is room: it syncs as on a disk, and a new schema takes half of the CPU. Tests that crash a server
 * start their own.
 */
interface Shared {
  server: Promise<TestPostgres>;
  users: number;
}

const holder = globalThis as { curfewPostgres?: Shared };

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  holder.curfewPostgres ??= { server: memoryFolder().then(startPostgres), users: 0 };
  const shared = holder.curfewPostgres;
  shared.users += 1;
  project.provide("postgresUrl", (await shared.server).url);
  return async () => {
    shared.users -= 1;
    if (shared.users > 0) return;
    delete holder.curfewPostgres;
    await (await shared.server)[Symbol.asyncDispose]();
  };
}
