import { CELLS, type Cell } from "../../core/home/cell.ts";
import type { IdSource } from "../../core/ids.ts";
import { type Random, randomInt } from "../../core/random.ts";

/** Ids in the cell of the case, else in the one that their key asks for, else in random ones. */
export function spreadIds(nextId: IdSource, random: Random, home: Cell | undefined): IdSource {
  return (cell) => nextId(home ?? cell ?? randomInt(random, CELLS));
}
