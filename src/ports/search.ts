import type { JobId } from "../core/job/job.ts";

/** Characters of a payload that an index covers. */
export const SEARCHED_LENGTH = 8_000;

/** A job that may have a text, and the cursor that continues after it. */
export interface SearchCandidate {
  readonly id: JobId;
  readonly cursor: string;
}

/** One step of a search: every job that has the text, and some that do not, up to where it came. */
export interface SearchStep {
  readonly candidates: readonly SearchCandidate[];
  /** Continues the search; null at its end. */
  readonly next: string | null;
}

/**
 * An index that somebody switches on, for texts of 3 characters or more within the first `SEARCHED_LENGTH` of a payload.
 * It holds nothing that `options.redact` hides.
 */
export interface SearchIndex {
  /** The next jobs that may have the text, the newest first; null if the index is not built. */
  find(text: string, before: string | null, limit: number): Promise<SearchStep | null>;
  /** Builds it while others work. It may be repeated, and goes on where it stopped. */
  build(onStep: (done: number) => void): Promise<void>;
  drop(): Promise<void>;
}
