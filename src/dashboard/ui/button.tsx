import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { toast } from "../state/toasts.ts";
import { after } from "../system.ts";
import type { IconName } from "./drawings.ts";
import { Icon } from "./icon.tsx";

interface Look {
  readonly kind?: "primary" | "danger" | "ghost" | "plain";
  readonly small?: boolean;
  readonly icon?: IconName;
  /** The key that does the same. */
  readonly hint?: string;
  readonly children?: ComponentChildren;
}

interface ButtonProps extends Look {
  readonly onClick?: (event: MouseEvent) => void;
  readonly submit?: boolean;
  readonly busy?: boolean;
  /** Why it cannot be pressed. It stays visible, and says so. */
  readonly whyNot?: string | undefined;
  readonly label?: string;
  readonly pressed?: boolean;
  readonly expanded?: boolean;
}

function classOf({ kind = "plain", small, icon, children }: Look): string {
  const isIconOnly = icon !== undefined && children === undefined;
  return ["btn", kind === "plain" ? "" : kind, small ? "small" : "", isIconOnly ? "icon" : ""]
    .filter((name) => name !== "")
    .join(" ");
}

export function Button(props: ButtonProps) {
  const {
    onClick,
    submit = false,
    busy = false,
    whyNot,
    label,
    pressed,
    expanded,
    icon,
    hint,
    children,
  } = props;
  return (
    <button
      class={classOf(props)}
      type={submit ? "submit" : "button"}
      disabled={busy || whyNot !== undefined}
      aria-busy={busy}
      aria-label={label}
      aria-pressed={pressed}
      aria-expanded={expanded}
      title={whyNot ?? label}
      onClick={onClick}
    >
      {icon && <Icon name={icon} small />}
      {children}
      {hint && <kbd class="hide-s">{hint}</kbd>}
    </button>
  );
}

/** Looks like a button, leads somewhere. */
export function LinkButton(props: Look & { readonly href: string; readonly download?: boolean }) {
  const { href, icon, children, hint, download } = props;
  return (
    <a class={classOf(props)} href={href} download={download}>
      {icon && <Icon name={icon} small />}
      {children}
      {hint && <kbd class="hide-s">{hint}</kbd>}
    </a>
  );
}

export async function copyText(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast(`Copied ${what}.`);
  } catch {
    toast(`The browser did not allow copying ${what}.`, { kind: "failed" });
  }
}

export function CopyButton({ text, what }: { readonly text: string; readonly what: string }) {
  const [isDone, setDone] = useState(false);
  const copy = () => {
    void copyText(text, what);
    setDone(true);
    after(1_500, () => setDone(false));
  };
  return (
    <button class="link copy" type="button" aria-label={`Copy ${what}`} title={`Copy ${what}`} onClick={copy}>
      <Icon name={isDone ? "check" : "copy"} small />
    </button>
  );
}

export function CopyId({ id }: { readonly id: string }) {
  return (
    <span class="id">
      {id} <CopyButton text={id} what="the id" />
    </span>
  );
}
