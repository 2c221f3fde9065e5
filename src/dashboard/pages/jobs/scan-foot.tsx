import type { Pagination } from "../../api/wire.ts";
import { hrefWith, query } from "../../state/router.ts";
import { countText } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";

interface ScanFootProps {
  readonly found: number;
  readonly scanned: number | undefined;
  readonly pagination: Pagination;
  readonly what: string;
}

/** The foot of a list whose rows are read one by one: how far it came, and the way on. */
export function ScanFoot({ found, scanned = 0, pagination, what }: ScanFootProps) {
  const { has_more, next_cursor } = pagination;
  return (
    <div class="foot bare">
      <span>
        {has_more
          ? `${countText(found)} found among at most ${countText(scanned)} ${what}. A search reads a bounded number of them; go on for the rest.`
          : `${countText(found)} found; all ${what} ${query.value.has("cursor") ? "of the rest " : ""}were searched.`}
      </span>
      <span class="push rowf">
        {query.value.has("cursor") && (
          <a class="btn small" href={hrefWith({ cursor: null })}>
            First page
          </a>
        )}
        {has_more && (
          <a class="btn small" href={hrefWith({ cursor: next_cursor })}>
            Search on
            <Icon name="right" small />
          </a>
        )}
      </span>
    </div>
  );
}
