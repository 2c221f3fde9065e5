import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, it } from "vitest";
import { apiIndex, MODULES } from "../site/api.ts";
import { docPages, docsSidebar, type Entry, GROUPS, ROOT } from "../site/layout.ts";
import { slugOf } from "../site/stage.ts";

const landing = readFileSync(join(ROOT, "site/index.md"), "utf8");

function linksOf(entries: readonly Entry[]): string[] {
  return entries.flatMap(({ link, items = [] }) => [
    ...(link === undefined ? [] : [link]),
    ...linksOf(items),
  ]);
}

/** `npm run docs:site` builds the site and refuses dead links. These are the parts that can be checked without it. */
describe("the documentation site", () => {
  it("has every page of docs/ in its sidebar, once", () => {
    const links = linksOf(docsSidebar());
    const pages = docPages();
    expect(pages.filter((page) => page.startsWith("guides/")).length).toBeGreaterThan(20);
    expect(links.filter((link) => pages.includes(link.slice(1))).sort()).toEqual(
      pages.map((page) => `/${page}`).sort(),
    );
  });

  it("has each page of docs/ that another page links to, in whatever folder it is", () => {
    const pages = docPages();
    const linked = [...pages, "README"].flatMap((page) => {
      const text = readFileSync(join(ROOT, "docs", `${page}.md`), "utf8");
      return [...text.matchAll(/\]\(([\w./-]+\.md)[)#]/g)].map(([, to]) =>
        join(ROOT, "docs", dirname(page), to as string),
      );
    });
    const inDocs = linked.filter(
      (file) => file.startsWith(join(ROOT, "docs/")) && !file.endsWith("README.md"),
    );
    expect(inDocs.length).toBeGreaterThan(100);
    const missing = inDocs.filter((file) => !pages.includes(relative(join(ROOT, "docs"), file).slice(0, -3)));
    expect([...new Set(missing)]).toEqual([]);
  });

  it("groups only pages that exist", () => {
    const pages = docPages();
    expect(GROUPS.flatMap((group) => group.pages).filter((page) => !pages.includes(page))).toEqual([]);
  });

  it("leads from the landing page only to pages that exist", () => {
    const links = [...landing.matchAll(/^\s+link: \/(\S+)$/gm)].map((match) => match[1] as string);
    expect(links).toContain("guides/quickstart");
    expect(links.filter((link) => !docPages().includes(link))).toEqual([]);
  });

  it("shows on the landing page a program, which docs.test.ts compiles, and the timeline", () => {
    expect(landing).toMatch(/^```ts\nimport \{.*\} from "curfew";$/m);
    expect(landing).toContain("<DeadlineTimeline />");
  });

  it("refers to every module that the package exports", () => {
    const { exports } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { exports: object };
    const exported = Object.keys(exports).filter((path) => path !== "./package.json");
    expect(MODULES.map(({ name }) => name).sort()).toEqual(
      exported.map((path) => path.replace(".", "curfew")).sort(),
    );
    expect(MODULES.filter(({ file }) => !existsSync(join(ROOT, file)))).toEqual([]);
  });

  it("says on the first page of the reference what each module is for", () => {
    for (const { name, about } of MODULES)
      expect(apiIndex()).toContain(`| [\`${name}\`](${name}/index.md) | ${about} |`);
  });

  it("makes the anchors that GitHub makes", () => {
    expect(["worker.blocked", "Runbook: events", "store_slow", "10. Calls and streams"].map(slugOf)).toEqual([
      "workerblocked",
      "runbook-events",
      "store_slow",
      "10-calls-and-streams",
    ]);
  });
});
