import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import type { NewTimeout } from "../../core/timeout/timeout.ts";
import type { Effect, Unit } from "../../ports/store.ts";

/** The most items, and the most characters of documents, of one statement or transaction. */
export interface BatchSize {
  readonly items: number;
  readonly text: number;
}

/** Splits a list in order. An item that is too large becomes its own batch. */
export function batchesOf<Item>(
  items: readonly Item[],
  most: BatchSize,
  textOf: (item: Item) => number,
): readonly (readonly Item[])[] {
  const batches: (readonly Item[])[] = [];
  let from = 0;
  let text = 0;
  for (let index = 0; index < items.length; index++) {
    const size = textOf(items[index] as Item);
    if (index > from && (index - from === most.items || text + size > most.text)) {
      batches.push(items.slice(from, index));
      from = index;
      text = 0;
    }
    text += size;
  }
  // Nearly every call is small enough. Then it is not copied.
  if (from === 0) return items.length === 0 ? [] : [items];
  batches.push(items.slice(from));
  return batches;
}

/** For items without documents. */
export const noText = (): number => 0;

export function textOfJob({ payload }: NewJob): number {
  return payload.length;
}

/** The characters of the documents that handlers write and of the jobs in effects. The rest of a unit is small. */
export function textOfUnit({ job, effects }: Unit): number {
  const documents = job?.documents;
  let text = 0;
  if (documents) {
    const { options, progress, checkpoint, result } = documents;
    text += (progress?.length ?? 0) + (checkpoint?.length ?? 0) + (result?.length ?? 0);
    text += options?.parentResults?.length ?? 0;
  }
  if (effects) for (const effect of effects) text += textOfEffect(effect);
  return text;
}

export function textOfTimeout({ payload }: NewTimeout): number {
  return payload?.length ?? 0;
}

function textOfEffect(effect: Effect): number {
  if ("request" in effect) return textOfTimeout(effect.request);
  return "enqueue" in effect ? textOfJob(effect.enqueue) : 0;
}
