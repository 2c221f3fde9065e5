import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Engine, openEngine } from "../../src/index.ts";
import { type MoveReport, move } from "../../src/migrate/move.ts";
import { openSource, type SourceOptions } from "../../src/migrate/open-source.ts";
import type { Source } from "../../src/migrate/source.ts";
import { silentLogger } from "../../src/ports/log.ts";

export type ImportOptions = SourceOptions & { readonly isDry?: boolean };

/** Moves what `curfew import --from` would move, in this process. `change` may spoil the source. */
export async function importFrom(
  options: ImportOptions,
  change: (source: Source) => Source = (source) => source,
): Promise<MoveReport> {
  const { isDry = false, ...rest } = options;
  await using engine = await openStore(options.store);
  await using source = await openSource(rest, () => engine.now());
  const signal = new AbortController().signal;
  return await move(change(source), engine, { isDry, signal, onProgress: () => {} });
}

export function openStore(address: string): Promise<Engine> {
  return openEngine({ store: address, logger: silentLogger });
}

/** A source whose jobs cannot be removed, as if the process were killed between the two writes. */
export function neverRemoves(source: Source): Source {
  return {
    name: source.name,
    isAtomic: source.isAtomic,
    counts: () => source.counts(),
    crons: () => source.crons(),
    notes: () => source.notes(),
    async *pass(options) {
      for await (const batch of source.pass(options))
        yield { ...batch, remove: () => Promise.reject(new Error("killed")) };
    },
    [Symbol.asyncDispose]: () => source[Symbol.asyncDispose](),
  };
}

export const reasons = (tallies: MoveReport["refused"]) =>
  Object.fromEntries(tallies.map(({ reason, count }) => [reason, count]));

type Line = Awaited<ReturnType<Engine["exportJobs"]>>["lines"][number];
export type JobLine = Extract<Line, { kind: "job" }>;

/** The jobs of a store, as an export writes them. */
export async function jobsIn(address: string, queue?: string): Promise<JobLine[]> {
  await using engine = await openStore(address);
  const jobs: JobLine[] = [];
  for (let after: string | null = null; ; ) {
    const query = queue === undefined ? {} : { queue };
    const page = await engine.exportJobs(query, { after, limit: 1_000, ended: true });
    for (const line of page.lines) if (line.kind === "job") jobs.push(line);
    after = page.cursor;
    if (after === null) return jobs;
  }
}

/** A new SQLite file in a folder of its own. */
export async function createSqlite(): Promise<{ readonly address: string } & AsyncDisposable> {
  const folder = mkdtempSync(join(tmpdir(), "curfew-import-"));
  const address = `sqlite:${join(folder, "jobs.db")}`;
  await (await openStore(address)).close();
  return {
    address,
    async [Symbol.asyncDispose]() {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
