import type { Contender, Place } from "./contender.ts";
import type { ServerMeter } from "./measure.ts";

/** For `npm run bench:publish`: fewer jobs a round, so that all contenders fit into minutes. */
export const IS_SHORT = process.env.BENCH_SHORT === "1";

/** What one sample measured, by the key of its column; NaN where there is nothing to say. */
export type Figures = Readonly<Record<string, number>>;

export interface Column {
  readonly key: string;
  readonly title: string;
  readonly digits?: number;
}

/** What a sample is taken of. */
export interface Context {
  readonly contender: Contender;
  readonly key: string;
  /** Empty when the first sample begins. */
  readonly place: Place;
  /** Another one that stays empty, for what is compared with it. */
  readonly emptyPlace: Place;
  readonly meter: ServerMeter;
  /** Brings the statistics up to date, as autovacuum would in time: nobody is measured by a plan for an empty table. */
  analyze(place: Place): Promise<void>;
}

export interface Workload {
  readonly name: string;
  readonly title: string;
  /** Takes minutes, so it runs only when it is named or everything is asked for. */
  readonly isLong?: boolean;
  /** Where a round is so short that it needs more of them, or so long that it can have only few. */
  readonly rounds?: number;
  /** Whether the first rounds are thrown away, in which plans are made, code is compiled and files are grown. */
  readonly warmsUp: boolean;
  /** The first one is compared with the peers. */
  readonly columns: readonly [Column, ...Column[]];
  readonly lowerIsBetter?: boolean;
  suits(contender: Contender): boolean;
  setUp?(context: Context): Promise<void>;
  sample(context: Context): Promise<Figures>;
}

/** Wants jobs that are due later, and several processes. A contender under Bun is measured alone in its process. */
export function isQueue({ role, runtime }: Contender): boolean {
  return (role === "curfew" || role === "peer") && runtime === undefined;
}
