import { signal } from "@preact/signals";
import { PAGES } from "../pages.ts";
import { useKeys } from "../state/keys.ts";
import { go, href } from "../state/router.ts";
import { copyText } from "../ui/button.tsx";

/** What lies over the page. */
export const openedLayer = signal<"palette" | "keys" | null>(null);

export const close = () => {
  openedLayer.value = null;
};

/** Keys that work on every page. */
export function ShellKeys() {
  const open = (layer: "palette" | "keys") => () => {
    openedLayer.value = layer;
  };
  useKeys([
    { keys: "/", says: "Search", run: open("palette") },
    { keys: "Ctrl+K", says: "Command palette", run: open("palette") },
    { keys: "?", says: "All keys", run: open("keys") },
    {
      keys: "Shift+Y",
      says: "Copy the link to what is seen",
      run: () => void copyText(location.href, "the link"),
    },
    ...PAGES.flatMap(({ nav, title, path }) =>
      nav ? [{ keys: `g ${nav.key}`, says: `Go to ${title}`, run: () => go(href(path)) }] : [],
    ),
  ]);
  return null;
}
