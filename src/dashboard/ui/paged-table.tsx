import type { ComponentChildren } from "preact";
import type { Page } from "../../ojs/replies/wire-replies.ts";
import { Pager } from "./pager.tsx";
import { Table, type TableProps } from "./table.tsx";

interface PagedTableProps<Row> extends Omit<TableProps<Row>, "rows"> {
  readonly page: Page<Row>;
  /** Says how many there are in all, if the server counted them. */
  readonly isCounted?: boolean;
  /** What is shown instead of a table without rows. */
  readonly empty: ComponentChildren;
}

/** A page of a list that is read by cursor. */
export function PagedTable<Row>({ page, isCounted = false, empty, ...table }: PagedTableProps<Row>) {
  const { items, pagination } = page;
  const count = isCounted ? { total: pagination.total, isExact: pagination.total_is_exact } : {};
  if (items.length === 0)
    return (
      <>
        <div class="tablewrap">{empty}</div>
        {pagination.has_more && <Pager shown={0} next={pagination.next_cursor} />}
      </>
    );
  return (
    <>
      <Table {...table} rows={items} />
      <Pager shown={items.length} next={pagination.next_cursor} {...count} />
    </>
  );
}
