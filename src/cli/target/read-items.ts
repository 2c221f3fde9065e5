import type { Fields, Query, Target } from "./target.ts";

const PAGE = 200;

interface ReadOptions {
  readonly most?: number;
  /** The name that the route has for the size of a page. */
  readonly size?: "limit" | "per_page";
  /** The field of the reply that has the items. */
  readonly field?: string;
}

/** Reads a list page by page. */
export async function readItems(
  target: Target,
  path: string,
  query: Query = {},
  { most = Number.POSITIVE_INFINITY, size = "limit", field = "items" }: ReadOptions = {},
): Promise<{ readonly items: readonly Fields[]; readonly has_more: boolean }> {
  const items: Fields[] = [];
  let cursor: string | undefined;
  do {
    const page = await target.get(path, { ...query, [size]: Math.min(PAGE, most - items.length), cursor });
    items.push(...(page[field] as readonly Fields[]));
    const { next_cursor } = page.pagination as { readonly next_cursor?: string | null };
    cursor = next_cursor ?? undefined;
  } while (cursor !== undefined && items.length < most);
  return { items, has_more: cursor !== undefined };
}
