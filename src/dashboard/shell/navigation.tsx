import { readDeadLetterStats } from "../api/operations.ts";
import { useResource } from "../api/resource.ts";
import { findPage, PAGES, type PageEntry } from "../pages.ts";
import { clockOffset } from "../state/clock.ts";
import { figures } from "../state/live.ts";
import { href, place } from "../state/router.ts";
import { visit } from "../state/session.ts";
import { countText, durationText, plural } from "../ui/format.ts";
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

/** A number beside the name of a page. */
interface Badge {
  readonly text: string;
  /** What it counts, for screen readers and on hover. */
  readonly says: string;
  /** Somebody should look. */
  readonly isAlert?: boolean;
}

/** How many there are of what a page shows, where that is known without asking for each page. */
function useBadges(): Readonly<Record<string, Badge>> {
  const letters = useResource("navigation dead letters", readDeadLetterStats, { live: 30_000 }).data;
  const heard = figures.value;
  const badges: Record<string, Badge> = {};
  if (letters && letters.total > 0)
    badges["dead-letters"] = {
      text: `${countText(letters.total)}${letters.total_is_exact ? "" : "+"}`,
      says: plural(letters.total, "dead letter"),
    };
  if (!heard) return badges;
  const silent = heard.workers.active.filter(({ state }) => state === "stale").length;
  badges.queues = { text: countText(heard.queues.length), says: plural(heard.queues.length, "queue") };
  badges.workers =
    silent > 0
      ? { text: `${countText(silent)} silent`, says: plural(silent, "silent worker"), isAlert: true }
      : { text: countText(heard.workers.total), says: plural(heard.workers.total, "worker") };
  return badges;
}

export function Navigation() {
  const badges = useBadges();
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
              <NavItem key={page.path} page={page} badge={badges[page.path]} />
            ))}
          </div>
        );
      })}
      <Version />
    </nav>
  );
}

interface NavItemProps {
  readonly page: NavEntry;
  readonly badge: Badge | undefined;
}

function NavItem({ page: { path, title, nav }, badge }: NavItemProps) {
  return (
    <a class="item" href={href(path)} aria-current={currentPath() === path ? "page" : undefined}>
      <Icon name={nav.icon} />
      {title}
      {badge && (
        <span class={`n${badge.isAlert ? " alert" : ""}`} title={badge.says} aria-hidden="true">
          {badge.text}
        </span>
      )}
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
