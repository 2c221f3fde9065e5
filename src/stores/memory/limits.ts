import { refuse } from "../../core/errors.ts";
import { BATCH_LIMIT } from "../../ports/store.ts";

export function checkBatch(items: readonly unknown[], field: string): void {
  if (items.length > BATCH_LIMIT) {
    throw refuse("invalid_limit", field, `${items.length} items`, `bring at most ${BATCH_LIMIT} in one call`);
  }
}

export function checkLimit(limit: number, most = Number.MAX_SAFE_INTEGER): void {
  if (!Number.isInteger(limit) || limit < 1 || limit > most) {
    throw refuse("invalid_limit", "limit", limit, `use a whole number from 1 to ${most}`);
  }
}
