import type { ConformanceCase, ConformanceSection, Runner } from "./kit.ts";
import { type OpenedTimeoutStore, openTimeoutBed, type TimeoutCase } from "./timeout-bed.ts";
import { growing, racing, surviving } from "./timeout-races.ts";
import { claiming, holding, inserting, managing } from "./timeouts.ts";

const SECTIONS: readonly { readonly name: string; readonly cases: readonly TimeoutCase[] }[] = [
  { name: "timeouts: insert and claim", cases: [...inserting, ...claiming] },
  { name: "timeouts: leases", cases: holding },
  { name: "timeouts: cancel, list and inspect", cases: managing },
  { name: "timeouts: races, crashes and growth", cases: [...racing, ...surviving, ...growing] },
];

function reasonToSkip(each: TimeoutCase, opened: OpenedTimeoutStore): string | undefined {
  if (each.leases && !opened.timeouts.leases) return "the store has no leases";
  return each.skip?.(opened);
}

async function runOn(each: TimeoutCase, opened: OpenedTimeoutStore): Promise<void> {
  const bed = await openTimeoutBed(opened);
  try {
    await each.run(bed);
  } finally {
    await bed.close();
  }
}

/** The cases of the timeout port, for a store that implements the other ports as well. */
export const TIMEOUT_SECTIONS: readonly ConformanceSection[] = SECTIONS.map(({ name, cases }) => ({
  name,
  cases: cases.map(
    (each): ConformanceCase => ({
      name: each.name,
      ...(each.timeout !== undefined && { timeout: each.timeout }),
      ...(each.home !== undefined && { home: each.home }),
      skip: (_capabilities, opened) => reasonToSkip(each, timeoutsOf(opened)),
      run: (bed) => runOn(each, timeoutsOf(bed.opened)),
    }),
  ),
}));

function timeoutsOf({
  store,
  another,
  reopen,
}: Parameters<NonNullable<ConformanceCase["skip"]>>[1]): OpenedTimeoutStore {
  const handleOf = (open: typeof another) =>
    open &&
    (async () => {
      const handle = await open();
      return { timeouts: handle.timeouts, close: () => handle.close() };
    });
  const [others, later] = [handleOf(another), handleOf(reopen)];
  return {
    timeouts: store.timeouts,
    clock: () => store.clock(),
    close: () => store.close(),
    ...(others && { another: others }),
    ...(later && { reopen: later }),
  };
}

export interface TimeoutConformanceOptions {
  readonly name: string;
  /** Opens the store on new, empty data, with its production settings. Called for each case. */
  open(): Promise<OpenedTimeoutStore>;
  readonly runner: Runner;
  /** Prints what the kit skips, and why. */
  readonly print?: (line: string) => void;
}

/** Registers only the cases of the timeout port. A dispatcher can run on a store that passes them. */
export function timeoutConformance({
  name,
  open,
  runner,
  print = console.log,
}: TimeoutConformanceOptions): void {
  const run = async (each: TimeoutCase, section: string) => {
    const opened = await open();
    try {
      const reason = reasonToSkip(each, opened);
      if (reason === undefined) await runOn(each, opened);
      else print(`skipped: ${section} > ${each.name}: ${reason}`);
    } finally {
      await opened.close();
      await opened.dispose?.();
    }
  };
  runner.describe(`${name} timeout store`, () => {
    for (const section of SECTIONS) {
      runner.describe(section.name, () => {
        for (const each of section.cases)
          runner.it(each.name, () => run(each, section.name), each.timeout ?? 30_000);
      });
    }
  });
}
