import { type ComponentChildren, Fragment } from "preact";
import { useRef } from "preact/hooks";
import { useKeys } from "../state/keys.ts";
import { go } from "../state/router.ts";

export interface Column<Row> {
  readonly id: string;
  readonly title: ComponentChildren;
  readonly render: (row: Row) => ComponentChildren;
  /** Numbers stand on the right. */
  readonly isNumber?: boolean;
  /** On a narrow screen this column is left out. */
  readonly hide?: "narrow" | "phone";
  /**
   * Where it goes on a phone, where a row becomes a small card: in its first line (`title` left, `side` right), in a line
   * of its own, or in a line with its name. Default `named`.
   */
  readonly phone?: "title" | "side" | "line" | "named" | "hide";
  readonly class?: string;
}

/** The name of a row stands first. */
export const NAME_COLUMN = { phone: "title", class: "c-name" } as const;
/** The buttons of a row stand last. */
export const ACTIONS_COLUMN = {
  id: "actions",
  title: <span class="sr">Actions</span>,
  phone: "line",
  class: "c-actions",
} as const;

interface NameLinkProps {
  readonly href: string;
  /** What is shown when the name is too long for its column. */
  readonly title?: string;
  readonly children: string;
}

export function NameLink({ href, title, children }: NameLinkProps) {
  return (
    <a class="name clip" href={href} title={title ?? children}>
      {children}
    </a>
  );
}

/** Which rows are ticked. */
export interface Selection {
  readonly ids: ReadonlySet<string>;
  readonly set: (ids: ReadonlySet<string>) => void;
}

export interface TableProps<Row> {
  readonly label: string;
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly idOf: (row: Row) => string;
  /** Where a row leads: with `Enter` or `o`, and with a click beside its links. */
  readonly hrefOf?: (row: Row) => string;
  readonly selection?: Selection;
  /** What is said below a row, over its whole width, such as what is wrong with it. */
  readonly below?: (row: Row) => ComponentChildren;
  readonly class?: string;
}

/**
 * A table whose rows are walked with `j` and `k`. The focus itself moves, from the row's first link to the next one's, so
 * `Enter`, `Ctrl Enter` and a screen reader do what they always do.
 */
export function Table<Row>(props: TableProps<Row>) {
  const { label, rows, columns, idOf, hrefOf, selection, below, class: more = "" } = props;
  const body = useRef<HTMLTableSectionElement>(null);
  useRowKeys(body, selection);
  const open = (event: MouseEvent, row: Row) => {
    const target = event.target as Element;
    if (!hrefOf || target.closest("a, button, input, label, summary")) return;
    if (getSelection()?.toString()) return;
    if (event.metaKey || event.ctrlKey) window.open(hrefOf(row), "_blank", "noopener");
    else go(hrefOf(row));
  };
  return (
    <div class="tablewrap">
      <table class={`stackable ${more}`} aria-label={label}>
        <thead>
          <tr>
            {selection && (
              <th class="c-check" scope="col">
                <AllBox rows={rows} idOf={idOf} selection={selection} />
              </th>
            )}
            {columns.map((column) => (
              <th key={column.id} scope="col" class={classOf(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          {rows.map((row) => {
            const note = below?.(row);
            return (
              <Fragment key={idOf(row)}>
                {/* The row's link takes the same keys; a click beside it is a convenience. */}
                <tr
                  data-id={idOf(row)}
                  aria-selected={selection ? selection.ids.has(idOf(row)) : undefined}
                  class={[hrefOf ? "leads" : "", note ? "noted" : ""].join(" ").trim() || undefined}
                  onClick={(event) => open(event, row)}
                >
                  {selection && (
                    <td class="c-check">
                      <RowBox id={idOf(row)} selection={selection} />
                    </td>
                  )}
                  {columns.map((column) => (
                    <td key={column.id} class={classOf(column)} data-label={labelOf(column)}>
                      {column.render(row)}
                    </td>
                  ))}
                </tr>
                {note && (
                  <tr class="note">
                    <td colSpan={columns.length + (selection ? 1 : 0)}>{note}</td>
                  </tr>
                )}
              </Fragment>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function classOf<Row>({ isNumber, hide, phone = "named", class: more }: Column<Row>): string {
  const hidden = hide === "narrow" ? "hide-m" : hide === "phone" ? "hide-s" : "";
  return (
    ["ph-", phone].join("") +
    (isNumber ? " num" : "") +
    (hidden ? ` ${hidden}` : "") +
    (more ? ` ${more}` : "")
  );
}

const labelOf = <Row,>({ title, phone = "named" }: Column<Row>) =>
  phone === "named" && typeof title === "string" ? title : undefined;

function RowBox({ id, selection: { ids, set } }: { readonly id: string; readonly selection: Selection }) {
  const toggle = () => {
    const next = new Set(ids);
    if (!next.delete(id)) next.add(id);
    set(next);
  };
  return <input type="checkbox" aria-label={`Select ${id}`} checked={ids.has(id)} onChange={toggle} />;
}

function AllBox<Row>({
  rows,
  idOf,
  selection: { ids, set },
}: Pick<TableProps<Row>, "rows" | "idOf"> & { readonly selection: Selection }) {
  const all = rows.length > 0 && rows.every((row) => ids.has(idOf(row)));
  const some = !all && rows.some((row) => ids.has(idOf(row)));
  return (
    <input
      type="checkbox"
      aria-label="Select all on this page"
      checked={all}
      indeterminate={some}
      onChange={() => set(new Set(all ? [] : rows.map(idOf)))}
    />
  );
}

function useRowKeys(
  body: { readonly current: HTMLTableSectionElement | null },
  selection: Selection | undefined,
) {
  const from = useRef<string | null>(null);
  const rows = () => [...(body.current?.querySelectorAll<HTMLTableRowElement>("tr[data-id]") ?? [])];
  const here = () => rows().findIndex((row) => row.contains(document.activeElement));
  const move = (step: number) => {
    const all = rows();
    const index = here();
    const next = all[Math.max(0, Math.min(all.length - 1, index < 0 ? 0 : index + step))];
    const target =
      next?.querySelector<HTMLElement>("td a, td button") ?? next?.querySelector<HTMLElement>("input");
    target?.focus();
    next?.scrollIntoView({ block: "nearest" });
  };
  const tick = (isRange: boolean) => {
    const all = rows();
    const id = all[here()]?.dataset.id;
    if (!selection || id === undefined) return;
    const next = new Set(selection.ids);
    const start = isRange ? all.findIndex((row) => row.dataset.id === from.current) : -1;
    if (start >= 0) {
      const [low, high] = [start, here()].sort((a, b) => a - b) as [number, number];
      for (const row of all.slice(low, high + 1)) next.add(row.dataset.id as string);
    } else if (!next.delete(id)) next.add(id);
    from.current = id;
    selection.set(next);
  };
  const open = () => rows()[here()]?.querySelector<HTMLAnchorElement>("td a")?.click();
  useKeys([
    { keys: "j", says: "Next row", run: () => move(1) },
    { keys: "k", says: "Previous row", run: () => move(-1) },
    { keys: "o", says: "Open the row", run: open },
    ...(selection
      ? [
          { keys: "x", says: "Select the row", run: () => tick(false) },
          { keys: "Shift+X", says: "Select up to this row", run: () => tick(true) },
        ]
      : []),
  ]);
}
