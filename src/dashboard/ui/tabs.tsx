import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useKeys } from "../state/keys.ts";
import { go } from "../state/router.ts";

export interface Tab {
  readonly id: string;
  readonly title: ComponentChildren;
  readonly href: string;
  readonly count?: string | undefined;
  /** What the count is of. A narrow window shows it on hover only. */
  readonly unit?: string | undefined;
  /** A line before it. */
  readonly isApart?: boolean;
}

/** Tabs are links: each is an address that can be sent. `[` and `]` step through them. */
export function Tabs({
  label,
  tabs,
  current,
}: {
  readonly label: string;
  readonly tabs: readonly Tab[];
  readonly current: string;
}) {
  const step = (by: number) => {
    const index = tabs.findIndex(({ id }) => id === current);
    const next = tabs[(index + by + tabs.length) % tabs.length];
    if (next) go(next.href);
  };
  useKeys([
    { keys: "[", says: "Previous tab", run: () => step(-1) },
    { keys: "]", says: "Next tab", run: () => step(1) },
  ]);
  const nav = useRef<HTMLElement>(null);
  const widths = tabs.map(({ count }) => count?.length ?? 0).join();
  // The chosen one may lie beyond the edge of a narrow window, also once the counts have come.
  useEffect(() => {
    nav.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [current, widths]);
  return (
    <nav class="tabs" aria-label={label} ref={nav}>
      {tabs.map(({ id, title, href, count, unit, isApart }) => (
        <>
          {isApart && <span class="sep" key={`${id}-sep`} />}
          <a key={id} href={href} aria-current={id === current ? "page" : undefined}>
            {title}
            {count !== undefined && (
              <span class="n" title={unit && `${count} ${unit}`}>
                {count}
                {unit && <span class="unit"> {unit}</span>}
              </span>
            )}
          </a>
        </>
      ))}
    </nav>
  );
}

/** A few choices side by side, as links or as buttons. */
export function Segments<Value extends string>({
  label,
  options,
  value,
  onChange,
}: {
  readonly label: string;
  readonly options: readonly (readonly [value: Value, text: string])[];
  readonly value: Value;
  readonly onChange: (value: Value) => void;
}) {
  return (
    <fieldset class="seg" aria-label={label}>
      {options.map(([one, text]) => (
        <button key={one} type="button" aria-pressed={one === value} onClick={() => onChange(one)}>
          {text}
        </button>
      ))}
    </fieldset>
  );
}
