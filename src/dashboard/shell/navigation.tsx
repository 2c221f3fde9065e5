import { findPage, PAGES, type PageEntry } from "../pages.ts";
import { clockOffset } from "../state/clock.ts";
import { href, place } from "../state/router.ts";
import { visit } from "../state/session.ts";
import { durationText } from "../ui/format.ts";
import { Icon } from "../ui/icon.tsx";
import { isOffered } from "./offered.ts";
import { openedLayer } from "./shell-keys.tsx";

type NavEntry = PageEntry & { readonly nav: NonNullable<PageEntry["nav"]> };

const entries = (): NavEntry[] =>
  PAGES.filter((page): page is NavEntry => page.nav !== undefined && isOffered(page));

/** The page in the navigation that the present one belongs to: a job belongs to the jobs. */
function currentPath(): string {
  const path = findPage(place.value.path)?.entry.path ?? place.value.path;
  return path.split("/")[0] ?? "";
}

export function Navigation() {
  const groups = ["", "Work", "Look into", "Rules"] as const;
  return (
    <nav class="nav" aria-label="Pages">
      <a class="brand" href={href("")}>
        <Logo />
        curfew
      </a>
      {groups.map((group) => {
        const pages = entries().filter(({ nav }) => nav.group === group);
        if (pages.length === 0) return null;
        return (
          <div key={group}>
            {group !== "" && <h2>{group}</h2>}
            {pages.map((page) => (
              <NavItem key={page.path} page={page} />
            ))}
          </div>
        );
      })}
      <Version />
    </nav>
  );
}

function NavItem({ page: { path, title, nav } }: { readonly page: NavEntry }) {
  return (
    <a class="item" href={href(path)} aria-current={currentPath() === path ? "page" : undefined}>
      <Icon name={nav.icon} />
      {title}
    </a>
  );
}

function Version() {
  if (visit.value.state !== "known") return null;
  const { version, store } = visit.value.session;
  return (
    <p class="ver">
      curfew {version}
      <br />
      {store}, this clock{" "}
      {Math.abs(clockOffset()) < 1_000 ? "agrees" : `differs by ${durationText(clockOffset())}`}
    </p>
  );
}

const ON_PHONE = 4;

/** The navigation of a phone. */
export function TabBar() {
  return (
    <nav class="tabbar" aria-label="Main pages">
      {entries()
        .slice(0, ON_PHONE)
        .map(({ path, title, nav }) => (
          <a key={path} href={href(path)} aria-current={currentPath() === path ? "page" : undefined}>
            <Icon name={nav.icon} />
            {title}
          </a>
        ))}
      <button
        type="button"
        onClick={() => {
          openedLayer.value = "palette";
        }}
      >
        <Icon name="more" />
        More
      </button>
    </nav>
  );
}

export function Logo() {
  return (
    <svg class="mark" viewBox="0 0 22 22" aria-hidden="true">
      <rect width="22" height="22" rx="6" fill="currentColor" />
      <path d="M5 7.5v7M5 11h8.5" class="mark-line" />
      <path d="M16.5 5.5v11" class="mark-end" />
    </svg>
  );
}
