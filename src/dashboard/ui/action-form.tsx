import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Right } from "../../ojs/replies/wire-replies.ts";
import type { ApiError, Result } from "../api/client.ts";
import { whyNot } from "../state/session.ts";
import { type Toast, toast } from "../state/toasts.ts";
import { ActionDialog } from "./dialog.tsx";
import { ReasonField } from "./fields.tsx";

export interface ActionFormProps<Value> {
  readonly title: string;
  /** What the button says. */
  readonly action: string;
  readonly isDanger?: boolean;
  readonly right?: Right;
  /** Why it cannot be done yet, such as a field that is not filled in. */
  readonly blocked?: string | undefined;
  readonly act: (reason: string) => Promise<Result<Value>>;
  /** What is said when it is done; left out where the page shows it. */
  readonly said?: string | ((value: Value) => string);
  /** Offered beside what is said. */
  readonly undo?: Toast["action"];
  /** False where the audit has no entry of it. */
  readonly asksReason?: boolean;
  readonly onClose: () => void;
  readonly onDone: (value: Value) => void;
  /** What it will do, in a sentence or two. */
  readonly does?: string;
  /** What it asks for besides the reason. */
  readonly children?: ComponentChildren;
}

/** An action with its reason. A refusal stays in the form in the server's words. */
export function ActionForm<Value>(props: ActionFormProps<Value>) {
  const { title, action, isDanger = false, right = "operate", blocked, act, said, onClose, onDone } = props;
  const { asksReason = true } = props;
  const [reason, setReason] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const run = async () => {
    setBusy(true);
    setError(undefined);
    const result = await act(reason);
    setBusy(false);
    if (!result.ok) return setError(result.error);
    const text = typeof said === "function" ? said(result.data) : said;
    if (text !== undefined) toast(text, { action: props.undo });
    onDone(result.data);
  };
  return (
    <ActionDialog
      title={title}
      action={action}
      isDanger={isDanger}
      busy={isBusy}
      error={error}
      whyNot={whyNot(right) ?? blocked}
      onAct={() => void run()}
      onClose={onClose}
    >
      {props.does !== undefined && <p>{props.does}</p>}
      {props.children}
      {asksReason && <ReasonField value={reason} onInput={setReason} />}
    </ActionDialog>
  );
}
