import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Right } from "../../ojs/replies/wire-replies.ts";
import type { ApiError, Result } from "../api/client.ts";
import { whyNot } from "../state/session.ts";
import { toast } from "../state/toasts.ts";
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
  /** What is said when it is done. */
  readonly said: string | ((value: Value) => string);
  readonly onClose: () => void;
  readonly onDone: (value: Value) => void;
  /** What it will do. */
  readonly children: ComponentChildren;
}

/** An action with its reason. A refusal stays in the form in the server's words. */
export function ActionForm<Value>(props: ActionFormProps<Value>) {
  const { title, action, isDanger = false, right = "operate", blocked, act, said, onClose, onDone } = props;
  const [reason, setReason] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const run = async () => {
    setBusy(true);
    setError(undefined);
    const result = await act(reason);
    setBusy(false);
    if (!result.ok) return setError(result.error);
    toast(typeof said === "string" ? said : said(result.data));
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
      {props.children}
      <ReasonField value={reason} onInput={setReason} />
    </ActionDialog>
  );
}
