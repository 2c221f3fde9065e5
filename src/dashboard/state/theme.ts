import { effect } from "@preact/signals";
import { stored } from "./storage.ts";

const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

export const theme = stored<Theme>("theme", "system", (value): value is Theme =>
  THEMES.includes(value as Theme),
);

effect(() => {
  if (theme.value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
});

export function nextTheme(): void {
  const index = THEMES.indexOf(theme.value);
  theme.value = THEMES[(index + 1) % THEMES.length] as Theme;
}
