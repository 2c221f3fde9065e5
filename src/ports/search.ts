import type { JobId } from "../core/job/job.ts";

/** Characters of a payload that an index covers. */
export const SEARCHED_LENGTH = 8_000;

/** A job that may have a text, and the cursor that continues after it. */
export interface SearchCandidate {
  readonly id: JobId;
  readonly cursor: string;
}

/**
 * An index that somebody switches on, for texts of 3 characters or more within the first `SEARCHED_LENGTH` of a payload.
 * It holds nothing that `options.redact` hides.
 */
export interface SearchIndex {
  /**
   * Jobs that may have the text, the newest first: every job that has it, and some that do not. Null if the index is not
   * built, or if more jobs have the text than the index reads: a scan of the newest finds enough of them.
   */
  find(text: string, before: string | null, limit: number): Promise<readonly SearchCandidate[] | null>;
  /** Builds it while others work. It may be repeated, and goes on where it stopped. */
  build(onStep: (done: number) => void): Promise<void>;
  drop(): Promise<void>;
}
