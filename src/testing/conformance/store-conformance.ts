import { clock } from "./clock.ts";
import { concurrency } from "./concurrency.ts";
import { contract } from "./contract.ts";
import { crashPoints } from "./crash-points.ts";
import { fair } from "./fair.ts";
import { fencing } from "./fencing.ts";
import { growth } from "./growth.ts";
import { hinting } from "./hinting.ts";
import { inspecting } from "./inspecting.ts";
import { instants } from "./instants.ts";
import { keyedUnits } from "./keyed-units.ts";
import { type ConformanceSection, type Runner, registerSections } from "./kit.ts";
import { leases } from "./leases.ts";
import { limits } from "./limits.ts";
import { lines } from "./lines.ts";
import { looking } from "./looking.ts";
import { oddData } from "./odd-data.ts";
import { recordedEvents } from "./recorded-events.ts";
import { recording } from "./recording.ts";
import { scanning } from "./scanning.ts";
import { sweeping } from "./sweeping.ts";
import type { OpenedStore } from "./test-bed.ts";
import { TIMEOUT_SECTIONS } from "./timeout-kit.ts";
import { timeoutUnits } from "./timeout-units.ts";
import { workflows } from "./workflows.ts";

/** Everything a store must do, in sections that can be run one by one. */
export const CONFORMANCE: readonly ConformanceSection[] = [
  contract,
  fencing,
  concurrency,
  crashPoints,
  leases,
  sweeping,
  looking,
  recording,
  recordedEvents,
  workflows,
  keyedUnits,
  limits,
  fair,
  oddData,
  instants,
  clock,
  growth,
  inspecting,
  scanning,
  lines,
  hinting,
  ...TIMEOUT_SECTIONS,
  timeoutUnits,
];

export interface ConformanceOptions {
  readonly name: string;
  /** Opens the store on new, empty data, with its production settings. Called for each case. */
  open(): Promise<OpenedStore>;
  readonly runner: Runner;
  /** Prints what the kit skips, and why. */
  readonly print?: (line: string) => void;
}

/** Registers the conformance kit for one store. An engine can run on a store that passes it. */
export function storeConformance({ name, open, runner, print = console.log }: ConformanceOptions): void {
  runner.describe(`${name} store`, () => registerSections(CONFORMANCE, { runner, open, print }));
}
