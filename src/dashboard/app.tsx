import { Component, type ComponentChildren, type ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { PageProps } from "./page-props.ts";
import { type FoundPage, findPage } from "./pages.ts";
import { CommandPalette } from "./shell/command-palette.tsx";
import { KeyHelp } from "./shell/key-help.tsx";
import { Login } from "./shell/login.tsx";
import { Navigation, TabBar } from "./shell/navigation.tsx";
import { openedLayer, ShellKeys } from "./shell/shell-keys.tsx";
import { TopBar } from "./shell/top-bar.tsx";
import { startLive } from "./state/live.ts";
import { href, place } from "./state/router.ts";
import { visit, whoAmI } from "./state/session.ts";
import { Button } from "./ui/button.tsx";
import { Callout, Empty, Skeleton } from "./ui/callout.tsx";
import { PageHead } from "./ui/card.tsx";
import { Sprite } from "./ui/icon.tsx";
import { Toasts } from "./ui/toasts.tsx";

export function App() {
  return (
    <>
      <Sprite />
      <Visit />
      <Toasts />
    </>
  );
}

function Visit() {
  const { value } = visit;
  if (value.state === "refused") return <Login />;
  if (value.state === "failed")
    return (
      <main class="alone">
        <Callout tone="force">
          <p class="grow">
            <b>The server could not be asked who you are.</b> {value.error.message}
          </p>
          <Button small onClick={() => void whoAmI()}>
            Try now
          </Button>
        </Callout>
      </main>
    );
  if (value.state === "unknown") return <main class="alone" aria-busy="true" aria-label="Loading" />;
  return <Shell />;
}

function Shell() {
  useEffect(startLive, []);
  return (
    <div class="app">
      <a class="skip" href="#main">
        Skip to content
      </a>
      <Navigation />
      <div class="min0">
        <TopBar />
        <main class="page" id="main">
          <CurrentPage />
        </main>
      </div>
      <TabBar />
      <ShellKeys />
      {openedLayer.value === "palette" && <CommandPalette />}
      {openedLayer.value === "keys" && <KeyHelp />}
    </div>
  );
}

function CurrentPage() {
  const { path } = place.value;
  const found = findPage(path);
  if (!found)
    return (
      <>
        <PageHead title="No such page" />
        <Empty icon="search" title={`Nothing is at ${path.slice(0, 200)}`}>
          <a href={href("")}>To the overview</a>
        </Empty>
      </>
    );
  return <Loaded key={found.entry.path} found={found} />;
}

/** Loads the code of a page, then shows it. The code of a page that was shown before is there at once. */
function Loaded({ found: { entry, params } }: { readonly found: FoundPage }) {
  const [page, setPage] = useState<ComponentType<PageProps> | null>(null);
  const [isLost, setLost] = useState(false);
  useEffect(() => {
    let isGone = false;
    entry.load().then(
      ({ Page }) => !isGone && setPage(() => Page),
      () => !isGone && setLost(true),
    );
    return () => {
      isGone = true;
    };
  }, [entry]);
  if (isLost)
    return (
      <Callout tone="soft">
        <p class="grow">
          This page's program could not be loaded. The server may have been updated meanwhile.
        </p>
        <Button small onClick={() => location.reload()}>
          Load anew
        </Button>
      </Callout>
    );
  const Page = page;
  if (!Page) return <Skeleton />;
  return (
    <Guard key={JSON.stringify(params)}>
      <Page params={params} />
    </Guard>
  );
}

/** A page that fails must not take the others with it. */
class Guard extends Component<{ readonly children: ComponentChildren }, { readonly error: Error | null }> {
  override state = { error: null };
  static override getDerivedStateFromError(error: Error) {
    return { error };
  }
  override render() {
    const { error } = this.state as { error: Error | null };
    if (!error) return this.props.children;
    return (
      <Callout tone="force">
        <p class="grow">
          <b>This page has a mistake and stopped.</b> {error.message}
        </p>
        <Button small onClick={() => this.setState({ error: null })}>
          Try again
        </Button>
      </Callout>
    );
  }
}
