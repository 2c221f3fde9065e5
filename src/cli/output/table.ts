import { stripVTControlCharacters } from "node:util";
import { dim } from "./paint.ts";

export interface Column<Row> {
  readonly title: string;
  /** The text of a cell; its colours do not count as width. */
  readonly show: (row: Row) => string;
  readonly align?: "right";
  /** The least width to which this column may shrink when the table is too wide; absent: it never shrinks. */
  readonly shrinkTo?: number;
  /** Left out where the terminal is too narrow, the highest number first; absent: it is always there. */
  readonly drop?: number;
}

const GAP = 2;
/** Without a terminal nothing is cut: the output goes to a program or a file. */
const UNBOUNDED = Number.POSITIVE_INFINITY;

export function terminalWidth(stream: NodeJS.WriteStream = process.stdout): number {
  return stream.isTTY ? stream.columns || 80 : UNBOUNDED;
}

const lengthOf = (text: string) => stripVTControlCharacters(text).length;

/** Rows under titles, at most as wide as the terminal. */
export function tableText<Row>(
  wanted: readonly Column<Row>[],
  rows: readonly Row[],
  width = terminalWidth(),
): string {
  const columns = fitting(wanted, rows, width);
  const cells = rows.map((row) => columns.map(({ show }) => show(row)));
  const widths = columns.map((column) => widthOf(column, rows));
  shrink(columns, widths, width);
  const line = (texts: readonly string[]) =>
    texts
      .map((text, index) => padded(text, widths[index] as number, columns[index]?.align))
      .join(" ".repeat(GAP))
      .trimEnd();
  const titles = dim(line(columns.map(({ title }) => title)));
  return [titles, ...cells.map(line)].join("\n");
}

function widthOf<Row>({ title, show }: Column<Row>, rows: readonly Row[]): number {
  return rows.reduce((most, row) => Math.max(most, lengthOf(show(row))), title.length);
}

/** The columns that fit after they have shrunk. */
function fitting<Row>(columns: readonly Column<Row>[], rows: readonly Row[], width: number) {
  if (width === UNBOUNDED) return columns;
  const least = (column: Column<Row>) =>
    Math.min(
      widthOf(column, rows),
      Math.max(column.shrinkTo ?? Number.POSITIVE_INFINITY, column.title.length),
    );
  const order = columns
    .filter(({ drop }) => drop !== undefined)
    .sort((a, b) => Number(b.drop) - Number(a.drop));
  let kept = columns;
  const needed = () => kept.reduce((sum, column) => sum + least(column) + GAP, -GAP);
  for (const column of order) {
    if (needed() <= width) break;
    kept = kept.filter((each) => each !== column);
  }
  return kept;
}

/** Shrinks columns, the last one first, until the table fits. */
function shrink<Row>(columns: readonly Column<Row>[], widths: number[], width: number): void {
  let excess = widths.reduce((sum, each) => sum + each, GAP * (widths.length - 1)) - width;
  for (let index = columns.length - 1; index >= 0 && excess > 0; index--) {
    const { shrinkTo, title } = columns[index] as Column<Row>;
    if (shrinkTo === undefined) continue;
    const least = Math.max(shrinkTo, title.length);
    const given = Math.min(excess, Math.max(0, (widths[index] as number) - least));
    widths[index] = (widths[index] as number) - given;
    excess -= given;
  }
}

function padded(text: string, width: number, align: "right" | undefined): string {
  const length = lengthOf(text);
  // Cutting could remove the code that ends a colour, so a cut cell has no colours.
  if (length > width) return `${stripVTControlCharacters(text).slice(0, Math.max(0, width - 1))}…`;
  const space = " ".repeat(width - length);
  return align === "right" ? space + text : text + space;
}

/** Names and values, one pair per line. */
export function fieldsText(fields: readonly (readonly [name: string, value: string])[]): string {
  const width = Math.max(...fields.map(([name]) => name.length));
  return fields.map(([name, value]) => `${dim(name.padEnd(width))}  ${value}`).join("\n");
}
