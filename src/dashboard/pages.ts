import type { ComponentType } from "preact";
import type { Right } from "./api/wire.ts";
import type { PageProps } from "./page-props.ts";
import type { IconName } from "./ui/drawings.ts";

export interface PageEntry {
  /** Below the base, with parameters as `:name`. */
  readonly path: string;
  readonly title: string;
  /** Its code; loaded when the page is first shown. */
  readonly load: () => Promise<{ readonly Page: ComponentType<PageProps> }>;
  /** Where it stands in the navigation; pages of single things stand nowhere. */
  readonly nav?: {
    readonly group: "" | "Work" | "Look into" | "Rules";
    readonly icon: IconName;
    /** `g` and this key lead there. */
    readonly key: string;
  };
  /** The right without which the page is not offered. Default `read`. */
  readonly right?: Right;
}

/** Every page. A new one is a line here and a folder below `pages/`; README.md says how. */
export const PAGES: readonly PageEntry[] = [
  {
    path: "",
    title: "Overview",
    load: () => import("./pages/overview/page.tsx"),
    nav: { group: "", icon: "overview", key: "o" },
  },
  {
    path: "jobs",
    title: "Jobs",
    load: () => import("./pages/jobs/page.tsx"),
    nav: { group: "", icon: "jobs", key: "j" },
  },
  { path: "jobs/:id", title: "Job", load: () => import("./pages/job/page.tsx") },
];

export interface FoundPage {
  readonly entry: PageEntry;
  readonly params: Readonly<Record<string, string>>;
}

/** The page at a path below the base. */
export function findPage(path: string, pages: readonly PageEntry[] = PAGES): FoundPage | null {
  const parts = path.split("/");
  for (const entry of pages) {
    const wanted = entry.path.split("/");
    if (wanted.length !== parts.length) continue;
    const params: Record<string, string> = {};
    const fits = wanted.every((name, index) => {
      const part = parts[index] ?? "";
      if (!name.startsWith(":")) return name === part;
      params[name.slice(1)] = decode(part);
      return part !== "";
    });
    if (fits) return { entry, params };
  }
  return null;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
