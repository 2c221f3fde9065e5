import { refuse } from "../../core/errors.ts";
import type { Store } from "../../ports/store.ts";

/** Refuses `tx` if the store cannot join a caller's transaction. */
export function checkTx(
  { capabilities: { name, tx: joins } }: Pick<Store, "capabilities">,
  tx: unknown,
): void {
  if (tx === undefined || joins) return;
  const fix = `the ${name} store has no transactions to join: leave it out`;
  throw refuse("invalid_option", "options.tx", typeof tx, fix);
}
