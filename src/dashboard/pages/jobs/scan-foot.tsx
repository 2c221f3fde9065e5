import type { Pagination } from "../../../ojs/replies/wire-replies.ts";
import { query } from "../../state/router.ts";
import { countText } from "../../ui/format.ts";
import { PageLinks } from "../../ui/pager.tsx";

interface ScanFootProps {
  readonly found: number;
  readonly scanned: number | undefined;
  readonly pagination: Pagination;
  readonly what: string;
  /** Whether an index could search all of them at once, and did. */
  readonly index?: "used" | "missing" | undefined;
}

/** The foot of a list whose rows are read one by one: how far it came, and the way on. */
export function ScanFoot({ found, scanned = 0, pagination, what, index }: ScanFootProps) {
  const { has_more, next_cursor } = pagination;
  return (
    <div class="foot bare">
      <span>
        {wordsOf(found, scanned, what, { hasMore: has_more, isIndexed: index === "used" })}
        {has_more && index === "missing" && (
          <>
            {" "}
            To search all {what} at once, build the index: <code>curfew migrate --search-index on</code>
          </>
        )}
      </span>
      <span class="push rowf">
        <PageLinks next={has_more ? next_cursor : null} older="Search on" />
      </span>
    </div>
  );
}

function wordsOf(
  found: number,
  scanned: number,
  what: string,
  { hasMore, isIndexed }: { readonly hasMore: boolean; readonly isIndexed: boolean },
): string {
  const isLater = query.value.has("cursor");
  if (!hasMore)
    return `${countText(found)} found; all ${what} ${isLater ? "of the rest " : ""}were searched.`;
  if (isIndexed) return `${countText(found)} found, the newest first; there are more.`;
  return `${countText(found)} found among at most ${countText(scanned)} ${what}. A search reads a bounded number of them; go on for the rest.`;
}
