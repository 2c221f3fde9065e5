/** A page gets what its path names: `jobs/:id` gives `{ id }`. */
export type PageProps = { readonly params: Readonly<Record<string, string>> };
