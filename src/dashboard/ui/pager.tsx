import { hrefWith, query } from "../state/router.ts";
import { countText } from "./format.ts";
import { Icon } from "./icon.tsx";

interface PagerProps {
  readonly shown: number;
  /** How many there are, where the server counted them. */
  readonly total?: number | undefined;
  readonly isExact?: boolean | undefined;
  readonly next: string | null | undefined;
  readonly older?: string;
}

/** The foot of a list that is read by cursor. */
export function Pager({ shown, total, isExact = true, next, older = "Next" }: PagerProps) {
  const isFirst = !query.value.has("cursor");
  const count = isFirst && total !== undefined && total >= shown ? total : undefined;
  return (
    <div class="foot bare">
      <span>
        {count === undefined
          ? isFirst && !next
            ? `${countText(shown)} in all`
            : `${countText(shown)} on this page`
          : `${shown} of ${isExact ? "" : "more than "}${countText(count)}`}
      </span>
      <span class="push rowf">
        <PageLinks next={next} older={older} />
      </span>
    </div>
  );
}

/** The links to the first page and to the next one. */
export function PageLinks({ next, older }: Pick<PagerProps, "next" | "older">) {
  return (
    <>
      {query.value.has("cursor") && (
        <a class="btn small" href={hrefWith({ cursor: null })}>
          First page
        </a>
      )}
      {next && (
        <a class="btn small" href={hrefWith({ cursor: next })}>
          {older}
          <Icon name="right" small />
        </a>
      )}
    </>
  );
}
