import type { Capabilities } from "../../ports/store.ts";
import { type OpenedStore, openBed, type TestBed } from "./test-bed.ts";

/** The test runner that the kit needs. vitest, node:test, mocha and jest fit. */
export interface Runner {
  describe(name: string, run: () => void): void;
  it(name: string, run: () => Promise<void>, timeout?: number): void;
}

export interface ConformanceCase {
  readonly name: string;
  run(bed: TestBed): Promise<void>;
  /** Why this case does not apply to a store. It is printed, so that nothing is skipped silently. */
  skip?(capabilities: Capabilities, opened: OpenedStore): string | undefined;
  readonly timeout?: number;
}

export interface ConformanceSection {
  readonly name: string;
  readonly cases: readonly ConformanceCase[];
}

const DEFAULT_TIMEOUT = 30_000;

/** Runs one case on new data. Resolves with the reason if the case was skipped. Rejects if the store failed it. */
export async function runCase(
  { skip, run }: ConformanceCase,
  open: () => Promise<OpenedStore>,
): Promise<string | undefined> {
  const opened = await open();
  const reason = skip?.(opened.store.capabilities, opened);
  try {
    if (reason === undefined) await withBed(opened, run);
    return reason;
  } finally {
    await opened.store.close();
    await opened.dispose?.();
  }
}

async function withBed(opened: OpenedStore, run: (bed: TestBed) => Promise<void>): Promise<void> {
  const bed = await openBed(opened);
  try {
    await run(bed);
  } finally {
    await bed.close();
  }
}

/** Registers sections with a runner. */
export function registerSections(
  sections: readonly ConformanceSection[],
  {
    runner,
    open,
    print,
  }: { runner: Runner; open: () => Promise<OpenedStore>; print: (line: string) => void },
): void {
  for (const section of sections) {
    runner.describe(section.name, () => {
      for (const each of section.cases) {
        const run = async () => {
          const reason = await runCase(each, open);
          if (reason !== undefined) print(`skipped: ${section.name} > ${each.name}: ${reason}`);
        };
        runner.it(each.name, run, each.timeout ?? DEFAULT_TIMEOUT);
      }
    });
  }
}
