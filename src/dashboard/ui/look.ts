/** What things look like, for files that draw nothing themselves. */

export type Tone = "wait" | "run" | "done" | "soft" | "force" | "off";

export type LimitName = "wait" | "attempt" | "grace" | "heartbeat" | "total";

/** One limit of a job, as a list shows it. */
export interface DeadlineView {
  readonly name: LimitName;
  /** How much of the limit is used; 1 is the limit itself, and more is grace or lateness. */
  readonly used: number;
  readonly look: "wait" | "run" | "near" | "over" | "late" | "ended";
  readonly hasGrace: boolean;
  readonly text: string;
  readonly tone?: Tone;
}
