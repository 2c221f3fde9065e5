/*
 * A home is a part of a store in which units are atomic. A store has one home or several. Every row belongs to one of
 * 4,096 cells, and a home has a range of cells, so the cell of a row does not depend on the number of homes.
 */

/** The number of a cell: 12 bits. */
export type Cell = number;
/** The number of a home within its store, from 0. */
export type Home = number;

export const CELLS = 4_096;

/** The cell of settings: rows that are few, change seldom and belong together. */
export const SETTINGS_CELL: Cell = 0;

/** The home of a cell in a store with this many homes. */
export function homeOf(cell: Cell, homes: number): Home {
  return homes === 1 ? 0 : Math.floor((cell * homes) / CELLS);
}

/** The first cell of a home. */
export function firstCellOf(home: Home, homes: number): Cell {
  return Math.ceil((home * CELLS) / homes);
}

const UUID_LENGTH = 36;
/** The twelve bits after the variant. The mask of a tenant leaves them as they are. */
const CELL_FROM = 20;
const CELL_TO = 23;
const UUID_TAIL = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Another text names its cell after a tilde: `order-7~0a3`. */
const NAMED_CELL = /~[0-9a-f]{3}$/;

/** The cell of a job, a timeout or a workflow. UUIDs carry it, other texts may name it, and the rest is hashed. */
export function cellOfId(id: string): Cell {
  const start = id.length - UUID_LENGTH;
  if (start >= 0 && UUID_TAIL.test(id)) return parseCell(id.slice(start + CELL_FROM, start + CELL_TO));
  return NAMED_CELL.test(id) ? parseCell(id.slice(-3)) : cellOfName(id);
}

/** The same id in another cell. */
export function withCell(id: string, cell: Cell): string {
  const digits = cell.toString(16).padStart(3, "0");
  const start = id.length - UUID_LENGTH;
  if (start < 0 || !UUID_TAIL.test(id)) return `${id.replace(NAMED_CELL, "")}~${digits}`;
  return id.slice(0, start + CELL_FROM) + digits + id.slice(start + CELL_TO);
}

function parseCell(digits: string): Cell {
  return Number.parseInt(digits, 16);
}

const OFFSET = 0x811c9dc5;
const PRIME = 0x01000193;

/** The cell of a stored name (FNV-1a, folded to 12 bits). The texts are short, and the order of stores is not at stake. */
export function cellOfName(stored: string): Cell {
  let hash = OFFSET;
  for (let index = 0; index < stored.length; index++)
    hash = Math.imul(hash ^ stored.charCodeAt(index), PRIME);
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x2c1b3c6d);
  hash ^= hash >>> 12;
  return hash >>> 20;
}
