import type { Cell } from "../../core/home/cell.ts";
import type { Capabilities } from "../../ports/store.ts";
import { homedStore } from "./homed-bed.ts";
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
  /**
   * The cell of all rows of this case, in a store with several homes. For a case whose units or order need one home.
   * Left out: ids are spread.
   */
  readonly home?: Cell;
}

export interface ConformanceSection {
  readonly name: string;
  readonly cases: readonly ConformanceCase[];
}

/** Cases whose rows are in one home. */
export function inOneHome(home: Cell, cases: readonly ConformanceCase[]): ConformanceCase[] {
  return cases.map((each) => ({ home, ...each }));
}

const DEFAULT_TIMEOUT = 30_000;

/** Runs one case on new data. Resolves with the reason if the case was skipped. Rejects if the store failed it. */
export async function runCase(
  { skip, run, home }: ConformanceCase,
  open: () => Promise<OpenedStore>,
): Promise<string | undefined> {
  const opened = homedStore(await open(), home);
  const reason = skip?.(opened.store.capabilities, opened);
  try {
    if (reason === undefined) await withBed(opened, run, home);
    return reason;
  } finally {
    await opened.store.close();
    await opened.dispose?.();
  }
}

async function withBed(
  opened: OpenedStore,
  run: (bed: TestBed) => Promise<void>,
  home: Cell | undefined,
): Promise<void> {
  const bed = await openBed(opened, home);
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
