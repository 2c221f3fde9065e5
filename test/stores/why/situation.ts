import type { WhyCode } from "../../../src/core/job/why/codes.ts";
import type { Rig } from "./rig.ts";

/** A state of the world that was made with real operations, and the reason that must come first. */
export interface Situation {
  readonly name: string;
  readonly first: WhyCode;
  /** Codes that must follow somewhere. */
  readonly also?: readonly WhyCode[];
  /** What the first sentence must say. */
  readonly says?: RegExp;
  /** What the sentence of one reason says. */
  readonly alsoSays?: RegExp;
  /** Makes it, and gives the job that is asked about. */
  make(rig: Rig): Promise<{ readonly id: string }>;
}
