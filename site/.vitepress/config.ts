import { defineConfig } from "vitepress";
import { apiSidebars } from "../api.ts";
import { docsSidebar } from "../layout.ts";
import { slugOf } from "../stage.ts";

/** For a site below a path, such as /curfew/. */
const base = process.env.CURFEW_SITE_BASE ?? "/";

// biome-ignore lint/style/noDefaultExport: VitePress reads its settings from the default export.
export default defineConfig({
  title: "curfew",
  titleTemplate: ":title · curfew",
  description: "Background jobs and sagas that end on time, for TypeScript.",
  lang: "en",
  srcDir: ".pages",
  outDir: "dist",
  cacheDir: ".cache",
  base,
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `${base}mark.svg` }]],
  appearance: true,
  lastUpdated: false,
  metaChunk: true,
  markdown: {
    anchor: { slugify: slugOf },
    theme: { light: "github-light", dark: "github-dark" },
  },
  vite: {
    // One bundle of the search index is larger than Vite's default for a warning; it is loaded when a reader searches.
    build: { chunkSizeWarningLimit: 4_000 },
  },
  themeConfig: {
    nav: [
      { text: "Quickstart", link: "/guides/quickstart" },
      { text: "Guides", link: "/guides/timeouts", activeMatch: "^/guides/(?!quickstart)" },
      { text: "API", link: "/api/", activeMatch: "^/api/" },
      { text: "Options", link: "/options" },
      { text: "Comparison", link: "/comparison" },
      { text: "Changelog", link: "/project/changelog" },
    ],
    sidebar: { "/": docsSidebar(), ...apiSidebars() },
    logo: "/mark.svg",
    outline: { level: [2, 3] },
    search: {
      provider: "local",
      options: {
        detailedView: true,
        miniSearch: {
          searchOptions: {
            // Guides explain, the reference lists, and the changelog and the decisions are history. This runs in the browser.
            boostDocument: (id: string) =>
              /\/guides\//.test(id) ? 3 : /\/(?:api|adr|project)\//.test(id) ? 0.5 : 1,
          },
        },
      },
    },
    footer: { message: "Apache-2.0" },
    docFooter: { prev: "Before", next: "Next" },
  },
});
