import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

/** The root of the repository. */
export const ROOT = join(import.meta.dirname, "..");

/** Where the pages are put before VitePress builds them. Nothing in it is committed. */
export const PAGES = join(import.meta.dirname, ".pages");

/** One entry of the sidebar, in the shape that VitePress takes. */
export interface Entry {
  readonly text: string;
  readonly link?: string;
  readonly collapsed?: boolean;
  readonly items?: readonly Entry[];
}

/**
 * The order of the pages. A page of docs/ that is not named here still appears: guides at the end of "More guides", others at the
 * end of "Reference". So a new page needs no change here, and one that is renamed is found by the test.
 */
export const GROUPS: readonly { readonly text: string; readonly pages: readonly string[] }[] = [
  {
    text: "Start",
    pages: [
      "guides/quickstart",
      "guides/installing",
      "guides/timeouts",
      "guides/retries",
      "guides/testing",
      "comparison",
    ],
  },
  {
    text: "Jobs",
    pages: [
      "guides/queues",
      "guides/cron",
      "guides/unique-jobs",
      "guides/rate-limits",
      "guides/fair-queues",
      "guides/workflows",
      "guides/batches",
      "guides/sandbox",
      "guides/dead-letters",
    ],
  },
  {
    text: "Sagas, calls and calendars",
    pages: [
      "guides/sagas",
      "guides/calls",
      "guides/calendars",
      "guides/timeouts-store",
      "guides/sagas-compared",
    ],
  },
  {
    text: "In your application",
    pages: [
      "guides/stores",
      "guides/redis",
      "guides/transactions",
      "guides/frameworks",
      "guides/serverless",
      "guides/server",
      "guides/remote-workers",
      "guides/webhooks",
      "guides/schemas",
    ],
  },
  {
    text: "In production",
    pages: [
      "guides/operations",
      "guides/deployment",
      "guides/dashboard",
      "guides/troubleshooting",
      "guides/statistics",
      "guides/adaptive-limits",
      "guides/events",
      "guides/tracing",
      "guides/tenants",
      "guides/redaction",
      "guides/encryption",
      "sizing",
      "scale",
      "security",
      "backup",
      "upgrading",
      "guides/moving-jobs",
    ],
  },
  {
    text: "From other systems",
    pages: [
      "guides/from-bullmq",
      "guides/from-pg-boss",
      "guides/from-graphile-worker",
      "guides/from-agenda",
      "guides/from-bee-queue",
      "guides/from-sidekiq",
      "guides/from-hangfire",
      "guides/from-nservicebus-timeouts",
    ],
  },
  { text: "More guides", pages: ["guides/writing-a-store"] },
  {
    text: "Reference",
    pages: [
      "semantics",
      "options",
      "errors",
      "warnings",
      "cli",
      "lifecycle",
      "glossary",
      "runtimes",
      "reliability",
      "benchmarks",
    ],
  },
];

/** The pages of docs/ and its folders by their path without ".md". The index of a folder is not one: the sidebar takes its place. */
export function docPages(): string[] {
  return readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".md") && basename(path) !== "README.md")
    .map((path) => path.slice(0, -".md".length))
    .sort();
}

/** The first heading of a page. */
export function titleOf(file: string): string {
  const text = readFileSync(file, "utf8");
  const title = /^# (.+)$/m.exec(text)?.[1];
  if (title === undefined) throw new Error(`${file} has no heading; a page begins with "# Title"`);
  return title.replaceAll(/[`\\]/g, "");
}

/** The sidebar of all pages but the API reference. */
export function docsSidebar(): Entry[] {
  const entry = (page: string): Entry => ({
    text: titleOf(join(ROOT, "docs", `${page}.md`)),
    link: `/${page}`,
  });
  const all = docPages();
  const named = new Set(GROUPS.flatMap(({ pages }) => pages));
  const others = all.filter((page) => !named.has(page) && !page.startsWith("adr/")).sort();
  const rest: Record<string, string[]> = {
    "More guides": others.filter((page) => page.startsWith("guides/")),
    Reference: others.filter((page) => !page.startsWith("guides/")),
  };
  const groups = GROUPS.map(({ text, pages }) => ({
    text,
    collapsed: false,
    items: [...pages, ...(rest[text] ?? [])].map(entry),
  }));
  const decisions = all.filter((page) => page.startsWith("adr/")).sort();
  return [
    ...groups,
    { text: "API", items: [{ text: "API reference", link: "/api/" }] },
    {
      text: "Project",
      collapsed: true,
      items: [
        { text: "Contents", link: "/contents" },
        { text: "Readme", link: "/project/readme" },
        { text: "Architecture", link: "/project/architecture" },
        { text: "Changelog", link: "/project/changelog" },
        { text: "Contributing", link: "/project/contributing" },
        { text: "Examples", link: "/source/examples/" },
        { text: "Decisions", collapsed: true, items: decisions.map(entry) },
      ],
    },
  ];
}
