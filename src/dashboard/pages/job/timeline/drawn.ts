/** What the lane of a timeline is drawn of. */
type SegmentKind =
  | "wait"
  | "run"
  | "run-future"
  | "grace"
  | "grace-future"
  | "backoff"
  | "ghost"
  | "stuck"
  | "folded"
  | "preview";

export interface Segment {
  readonly kind: SegmentKind;
  readonly from: number;
  readonly to: number;
  readonly text?: string | undefined;
}

export type MarkKind =
  | "created"
  | "signal"
  | "kill"
  | "fail"
  | "done"
  | "late"
  | "cancelled"
  | "stuck"
  | "start";

export interface TimelineMark {
  readonly kind: MarkKind;
  readonly at: number;
  /** What it is and why, for the one who stops at it. */
  readonly text: string;
}
