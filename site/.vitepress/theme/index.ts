import type { Theme } from "vitepress";
// This theme has no web fonts: the site loads nothing from other hosts, and texts use the fonts of the reader's system.
import DefaultTheme from "vitepress/theme-without-fonts";
import DeadlineTimeline from "./deadline-timeline.vue";
import "./style.css";

// biome-ignore lint/style/noDefaultExport: VitePress reads the theme from the default export.
export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component("DeadlineTimeline", DeadlineTimeline);
  },
} satisfies Theme;
