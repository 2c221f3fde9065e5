import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import type { ApiError } from "../api/client.ts";
import { Button } from "./button.tsx";
import { Callout } from "./callout.tsx";

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  readonly class?: string;
}

/** A native dialog: it holds the focus, closes with Esc, and gives the focus back. */
export function Dialog({ title, onClose, children, class: more }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const { current } = dialog;
    const before = document.activeElement;
    if (current && !current.open) current.showModal();
    return () => {
      current?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Esc closes a dialog by itself; the click is one on what is behind it.
    <dialog
      ref={dialog}
      class={more}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <header>
        <h2 id={id}>{title}</h2>
      </header>
      {children}
    </dialog>
  );
}

interface ActionDialogProps extends DialogProps {
  /** What the button says: the action itself, with its numbers. */
  readonly action: string;
  readonly isDanger?: boolean;
  readonly busy?: boolean;
  readonly whyNot?: string | undefined;
  readonly error?: ApiError | undefined;
  readonly onAct: () => void;
}

/** Asks what is needed for an action and says what it will do. A refusal is shown in it, and it stays open. */
export function ActionDialog(props: ActionDialogProps) {
  const { action, isDanger = false, busy = false, whyNot, error, onAct, onClose, children } = props;
  return (
    <Dialog {...props}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!busy && whyNot === undefined) onAct();
        }}
      >
        <div class="in">
          {children}
          {error && <Callout tone="force">{error.message}</Callout>}
        </div>
        <footer>
          <Button onClick={onClose}>Back</Button>
          <Button kind={isDanger ? "danger" : "primary"} submit busy={busy} whyNot={whyNot}>
            {action}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
