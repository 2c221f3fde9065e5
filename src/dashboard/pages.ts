import type { ComponentType } from "preact";
import type { Right } from "../ojs/replies/wire-replies.ts";
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
  /** About the whole server: not offered while the pages show one tenant. */
  readonly isAcrossTenants?: boolean;
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
  {
    path: "timeouts",
    title: "Timeouts",
    load: () => import("./pages/timeouts/page.tsx"),
    nav: { group: "", icon: "timeouts", key: "t" },
  },
  {
    path: "queues",
    title: "Queues",
    load: () => import("./pages/queues/page.tsx"),
    nav: { group: "Work", icon: "queues", key: "q" },
  },
  { path: "queues/:name", title: "Queue", load: () => import("./pages/queue/page.tsx") },
  {
    path: "workers",
    title: "Workers",
    load: () => import("./pages/workers/page.tsx"),
    nav: { group: "Work", icon: "workers", key: "w" },
  },
  {
    path: "crons",
    title: "Crons",
    load: () => import("./pages/crons/page.tsx"),
    nav: { group: "Work", icon: "crons", key: "c" },
  },
  { path: "crons/:name", title: "Cron", load: () => import("./pages/cron/page.tsx") },
  {
    path: "workflows",
    title: "Workflows",
    load: () => import("./pages/workflows/page.tsx"),
    nav: { group: "Work", icon: "workflows", key: "f" },
  },
  { path: "workflows/:id", title: "Workflow", load: () => import("./pages/workflow/page.tsx") },
  {
    path: "sagas",
    title: "Sagas",
    load: () => import("./pages/sagas/page.tsx"),
    nav: { group: "Work", icon: "sagas", key: "s" },
  },
  { path: "sagas/:type/:id", title: "Saga", load: () => import("./pages/saga/page.tsx") },
  {
    path: "webhooks",
    title: "Webhooks",
    load: () => import("./pages/webhooks/page.tsx"),
    nav: { group: "Work", icon: "webhooks", key: "h" },
    right: "operate",
  },
  {
    path: "webhooks/:id",
    title: "Webhook",
    load: () => import("./pages/webhook/page.tsx"),
    right: "operate",
  },
  {
    path: "dead-letters",
    title: "Dead letters",
    load: () => import("./pages/dead-letters/page.tsx"),
    nav: { group: "Look into", icon: "dead", key: "d" },
  },
  {
    path: "events",
    title: "Events",
    load: () => import("./pages/events/page.tsx"),
    nav: { group: "Look into", icon: "events", key: "e" },
  },
  {
    path: "audit",
    title: "Audit",
    load: () => import("./pages/audit/page.tsx"),
    nav: { group: "Look into", icon: "audit", key: "a" },
  },
  {
    path: "advice",
    title: "Advice",
    load: () => import("./pages/advice/page.tsx"),
    nav: { group: "Look into", icon: "advice", key: "v" },
  },
  {
    path: "limits",
    title: "Limits",
    load: () => import("./pages/limits/page.tsx"),
    nav: { group: "Rules", icon: "limits", key: "l" },
  },
  {
    path: "unique-keys",
    title: "Unique keys",
    load: () => import("./pages/unique-keys/page.tsx"),
    nav: { group: "Rules", icon: "unique", key: "u" },
  },
  {
    path: "schemas",
    title: "Schemas",
    load: () => import("./pages/schemas/page.tsx"),
    nav: { group: "Rules", icon: "schemas", key: "m" },
  },
  { path: "schemas/:type", title: "Schema", load: () => import("./pages/schema/page.tsx") },
  {
    path: "calendars",
    title: "Calendars",
    load: () => import("./pages/calendars/page.tsx"),
    nav: { group: "Rules", icon: "calendars", key: "b" },
  },
  { path: "calendars/:name", title: "Calendar", load: () => import("./pages/calendar/page.tsx") },
  {
    path: "tenants",
    title: "Tenants",
    load: () => import("./pages/tenants/page.tsx"),
    nav: { group: "Rules", icon: "tenants", key: "n" },
    right: "operate",
    isAcrossTenants: true,
  },
  {
    path: "system",
    title: "System",
    load: () => import("./pages/system/page.tsx"),
    nav: { group: "Rules", icon: "system", key: "y" },
  },
];

export interface FoundPage {
  readonly entry: PageEntry;
  readonly params: Readonly<Record<string, string>>;
}

/** The page at a path below the base. */
export function findPage(path: string): FoundPage | null {
  const parts = path.split("/");
  for (const entry of PAGES) {
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
