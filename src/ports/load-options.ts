export interface LoadOptions {
  /**
   * The rows come without what may be large (`briefRow` of core/job/documents/brief-row.ts), so that many of them fit into memory.
   * A row that is shown to people, or decided on after a failure, must be whole.
   */
  readonly isBrief?: boolean;
  /**
   * The answer ends with the row at which the rows have about this many characters together, and has one row at least.
   * The caller loads the ids that are left. Small rows then cost one call, and large ones do not fill the memory.
   */
  readonly size?: number;
}
