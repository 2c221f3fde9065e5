import { dim } from "./paint.ts";
import { terminalWidth, UNBOUNDED } from "./terminal-width.ts";
import { cutTo, displayWidth } from "./width.ts";
import { wrapText } from "./wrap.ts";

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

/** The same, or `none` where there are no rows. */
export function listText<Row>(columns: readonly Column<Row>[], rows: readonly Row[], none: string): string {
  return rows.length === 0 ? none : tableText(columns, rows);
}

function widthOf<Row>({ title, show }: Column<Row>, rows: readonly Row[]): number {
  return rows.reduce((most, row) => Math.max(most, displayWidth(show(row))), displayWidth(title));
}

/** The columns that fit after they have shrunk. */
function fitting<Row>(columns: readonly Column<Row>[], rows: readonly Row[], width: number) {
  if (width === UNBOUNDED) return columns;
  const least = (column: Column<Row>) =>
    Math.min(
      widthOf(column, rows),
      Math.max(column.shrinkTo ?? Number.POSITIVE_INFINITY, displayWidth(column.title)),
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

/** Shrinks columns, the last one first, until the table fits. If that is not enough, the widest ones are cut. */
function shrink<Row>(columns: readonly Column<Row>[], widths: number[], width: number): void {
  let excess = widths.reduce((sum, each) => sum + each, GAP * (widths.length - 1)) - width;
  const take = (index: number, most: number) => {
    const given = Math.min(excess, Math.max(0, most));
    widths[index] = (widths[index] as number) - given;
    excess -= given;
  };
  for (let index = columns.length - 1; index >= 0 && excess > 0; index--) {
    const { shrinkTo, title } = columns[index] as Column<Row>;
    if (shrinkTo !== undefined)
      take(index, (widths[index] as number) - Math.max(shrinkTo, displayWidth(title)));
  }
  while (excess > 0) {
    const widest = widths.indexOf(Math.max(...widths));
    if (widths[widest] === 1) return;
    take(widest, 1);
  }
}

function padded(text: string, width: number, align: "right" | undefined): string {
  const shown = cutTo(text, width);
  const space = " ".repeat(width - displayWidth(shown));
  return align === "right" ? space + shown : shown + space;
}

/** Names and values, one pair per line. A long value goes on below its beginning. */
export function fieldsText(fields: readonly (readonly [name: string, value: string])[]): string {
  const width = terminalWidth();
  const names = Math.max(...fields.map(([name]) => displayWidth(name)));
  const indent = " ".repeat(names + GAP);
  return fields
    .map(([name, value]) => {
      const space = " ".repeat(indent.length - displayWidth(name));
      return dim(name) + space + wrapText(value, indent, indent, width).slice(indent.length);
    })
    .join("\n");
}
