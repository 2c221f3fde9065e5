import { type Cell, cellOfId, cellOfName } from "./cell.ts";

/** What decides where a new job lives. Names are as they are stored. */
export interface HomeKeys {
  readonly workflow?: string;
  readonly limitKey?: string;
  readonly uniqueKey?: string;
  /** The mark of its queue (`queueMark`), if the queue is in one home. */
  readonly strictQueue?: string | undefined;
}

/**
 * The cell of a new job: the first of its workflow, its strict queue, its limit and its unique key decides. Undefined:
 * it is spread.
 */
export function cellOfJob({ workflow, strictQueue, limitKey, uniqueKey }: HomeKeys): Cell | undefined {
  if (workflow !== undefined) return cellOfId(workflow);
  const name = strictQueue ?? limitKey ?? uniqueKey;
  return name === undefined ? undefined : cellOfName(name);
}
