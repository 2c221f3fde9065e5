import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Button } from "./button.tsx";
import type { IconName } from "./drawings.ts";

/** What is needed less often, behind a button. Closes with Esc, and with a click anywhere. */
export function Menu({
  label,
  icon = "more",
  text,
  small = false,
  isOpen,
  onToggle,
  children,
}: {
  readonly label: string;
  readonly icon?: IconName;
  readonly text?: string;
  readonly small?: boolean;
  readonly isOpen: boolean;
  readonly onToggle: (isOpen: boolean) => void;
  readonly children: ComponentChildren;
}) {
  const root = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    if (!isOpen) return;
    root.current?.querySelector<HTMLElement>(".menu > :not(:disabled)")?.focus();
    const leave = (event: Event) => {
      const isInside = root.current?.contains(event.target as Node);
      if (event.type === "click" || !isInside) onToggle(false);
    };
    const onEscape = (event: KeyboardEvent) => {
      if (event.key === "Escape") onToggle(false);
    };
    addEventListener("mousedown", leave);
    root.current?.addEventListener("click", leave);
    addEventListener("keydown", onEscape);
    const { current } = root;
    return () => {
      removeEventListener("mousedown", leave);
      current?.removeEventListener("click", leave);
      removeEventListener("keydown", onEscape);
    };
  }, [isOpen, onToggle]);
  return (
    <span class="pop" ref={root}>
      <Button icon={icon} small={small} label={label} expanded={isOpen} onClick={() => onToggle(!isOpen)}>
        {text}
      </Button>
      {isOpen && <div class="popover menu right">{children}</div>}
    </span>
  );
}
