import { durationText } from "../../../ui/format.ts";
import type { Segment, TimelineMark } from "./drawn.ts";
import type { Run } from "./runs.ts";

/** A handler that runs on is drawn for at most this share of the job's life: the verdict is what the page is about. */
const MOST = 0.5;

/** Until when the bar of a handler that ran on past its verdict is drawn; null if it did not. */
export function stuckUntil({ isStuck, freedAt, to }: Run, createdAt: number, now: number): number | null {
  if (!isStuck || to === null) return null;
  return Math.max(to, Math.min(freedAt ?? now, to + (to - createdAt) * MOST));
}

/** Only the last attempt: what an earlier one still does would lie under the attempts after it. */
const lastOf = (runs: readonly Run[]) => runs.slice(-1);

export function stuckSegments(runs: readonly Run[], createdAt: number, now: number): Segment[] {
  return lastOf(runs).flatMap((run) => {
    const until = stuckUntil(run, createdAt, now);
    return until === null ? [] : [{ kind: "stuck", from: run.to ?? until, to: until, text: "runs on" }];
  });
}

export function stuckMarks(runs: readonly Run[], createdAt: number, now: number): TimelineMark[] {
  return lastOf(runs).flatMap((run) => {
    const at = stuckUntil(run, createdAt, now);
    if (at === null) return [];
    const name = `the handler of attempt ${run.attempt}`;
    const text =
      run.freedAt === null
        ? `${name} ran on past the verdict and was not seen to end`
        : `${name} ended ${durationText(run.freedAt - (run.to ?? run.freedAt))} after the verdict`;
    return [{ kind: "stuck", at, text }];
  });
}
