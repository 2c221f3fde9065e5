import { computed, signal } from "@preact/signals";

/**
 * Where the viewer is. Everything that decides what is seen stands in the URL: the page, its filters, the open tab. So a
 * link shows another person the same.
 */

/** The path under which the dashboard is served, with a slash at its end. */
export const base = document.querySelector<HTMLMetaElement>('meta[name="curfew-base"]')?.content ?? "/";

interface Place {
  /** The path below the base, without a slash at its start: `jobs/0198…`. */
  readonly path: string;
  readonly query: URLSearchParams;
}

function read(): Place {
  const { pathname, search } = location;
  const path = pathname.startsWith(base) ? pathname.slice(base.length) : "";
  return { path: path.replace(/\/+$/, ""), query: new URLSearchParams(search) };
}

export const place = signal<Place>(read());
export const query = computed(() => place.value.query);

addEventListener("popstate", () => {
  place.value = read();
});

export type QueryValues = Readonly<Record<string, string | null | undefined>>;

/** The address of a page. `to` is a path below the base, which may have a query. */
export function href(to: string, values: QueryValues = {}): string {
  const [path = "", search = ""] = to.split("?");
  const parameters = withValues(new URLSearchParams(search), values).toString();
  return `${base}${path}${parameters === "" ? "" : `?${parameters}`}`;
}

/** The address of this page with some of its query changed; null and "" take a value out. */
export function hrefWith(values: QueryValues): string {
  const parameters = withValues(new URLSearchParams(query.value), values).toString();
  return `${base}${place.value.path}${parameters === "" ? "" : `?${parameters}`}`;
}

function withValues(parameters: URLSearchParams, values: QueryValues): URLSearchParams {
  for (const [name, value] of Object.entries(values)) {
    if (value === null || value === undefined || value === "") parameters.delete(name);
    else parameters.set(name, value);
  }
  return parameters;
}

/** Goes to an address of ours. `isStep: false` replaces the present one, so that "back" does not lead to it. */
export function go(address: string, { isStep = true } = {}): void {
  if (isStep) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
  const before = place.value.path;
  place.value = read();
  if (place.value.path !== before) scrollTo(0, 0);
}

export function setQuery(values: QueryValues, options?: { readonly isStep?: boolean }): void {
  go(hrefWith(values), options);
}

/** Plain links work by themselves; this keeps the program running when they lead to one of its own pages. */
export function followLinks(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = (event.target as Element | null)?.closest?.("a[href]");
  if (!(link instanceof HTMLAnchorElement) || link.target !== "" || link.hasAttribute("download")) return;
  if (link.origin !== location.origin || !link.pathname.startsWith(base)) return;
  if (link.hash !== "" && link.pathname === location.pathname) return;
  if (/^(?:ojs|health|ready|metrics|openapi\.json)/.test(link.pathname.slice(base.length))) return;
  event.preventDefault();
  go(link.href);
}
