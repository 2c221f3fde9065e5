import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

/**
 * A sentence below a title that must be read first. It has room from the beginning, two lines of it on a phone: a line that
 * appears or breaks late pushes the page down.
 */
export function Summed({ children }: { readonly children?: ComponentChildren }) {
  return <div class="summed">{children}</div>;
}

/** The way back from this page to its list. */
export function Crumb({ href, children }: { readonly href: string; readonly children: string }) {
  return (
    <nav class="crumb" aria-label="Where you are">
      <a href={href}>{children}</a>
    </nav>
  );
}

/** The head of every page: its name, what it is about, what can be done. Sets the title of the tab. */
export function PageHead({
  title,
  tab = title,
  above,
  beside,
  below,
  children,
}: {
  readonly title: string;
  readonly tab?: string;
  readonly above?: ComponentChildren;
  readonly beside?: ComponentChildren;
  readonly below?: ComponentChildren;
  readonly children?: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${tab} · curfew`;
  }, [tab]);
  return (
    <>
      {above}
      <div class="head">
        <div class="min0">
          <h1>
            <span class="anywhere">{title}</span> {beside}
          </h1>
          {below && <div class="sub">{below}</div>}
        </div>
        {children && <div class="actions">{children}</div>}
      </div>
    </>
  );
}

export function Card({
  title,
  note,
  aside,
  label,
  class: more = "",
  children,
}: {
  readonly title?: ComponentChildren;
  readonly note?: ComponentChildren;
  readonly aside?: ComponentChildren;
  readonly label?: string;
  readonly class?: string;
  readonly children: ComponentChildren;
}) {
  return (
    <section class={`card ${more}`} aria-label={label ?? (typeof title === "string" ? title : undefined)}>
      {title && (
        <header>
          <h2>{title}</h2>
          {note && <span class="n">{note}</span>}
          {aside && <span class="push">{aside}</span>}
        </header>
      )}
      {children}
    </section>
  );
}

/** Names and values, one below the other. Left out: what is undefined. */
export function Facts({
  of,
}: {
  readonly of: readonly (readonly [name: string, value: ComponentChildren])[];
}) {
  return (
    <dl class="kv">
      {of
        .filter(([, value]) => value !== undefined && value !== null && value !== false)
        .map(([name, value]) => (
          <>
            <dt key={`${name}-name`}>{name}</dt>
            <dd key={name}>{value}</dd>
          </>
        ))}
    </dl>
  );
}
