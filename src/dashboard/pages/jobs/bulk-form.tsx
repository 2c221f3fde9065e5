import { useEffect, useRef, useState } from "preact/hooks";
import type { BulkTarget, Job } from "../../../ojs/replies/wire-replies.ts";
import type { ApiError } from "../../api/client.ts";
import { type BulkAction, previewBulk, runBulk } from "../../api/jobs.ts";
import { whyNot } from "../../state/session.ts";
import { toast } from "../../state/toasts.ts";
import { ActionDialog } from "../../ui/dialog.tsx";
import { ReasonField } from "../../ui/fields.tsx";
import { countText, plural } from "../../ui/format.ts";
import type { FormEnd } from "../../ui/use-form.ts";
import { undoOfAll } from "./undo-cancel.ts";

const WORDS: Readonly<
  Record<
    BulkAction,
    /** What is said of one job that it was done to, and of more. */
    { readonly verb: string; readonly done: readonly [one: string, more: string]; readonly says: string }
  >
> = {
  retry: {
    verb: "Retry",
    done: ["waits again", "wait again"],
    says: "Only discarded jobs are retried. Attempts start anew; wait and total count from now.",
  },
  cancel: {
    verb: "Cancel",
    done: ["is cancelled", "are cancelled"],
    says: "Only jobs that wait or run are cancelled. Running handlers hear the signal, and nothing they write counts.",
  },
  delete: {
    verb: "Delete",
    done: ["is deleted", "are deleted"],
    says: "Only jobs that have ended are deleted. This cannot be taken back.",
  },
};

interface BulkFormProps extends FormEnd {
  readonly action: BulkAction;
  readonly target: BulkTarget;
  /** The chosen jobs that waited when the form was opened: a cancel of these can be taken back. */
  readonly waiting?: readonly Job[];
}

/** First how many it means, then the action, a thousand at a time, with its progress. */
export function BulkForm({ action, target, waiting = [], onClose, onDone }: BulkFormProps) {
  const { verb, done, says } = WORDS[action];
  const [matched, setMatched] = useState<{ readonly count: number; readonly isComplete: boolean }>();
  const [reason, setReason] = useState("");
  const [error, setError] = useState<ApiError>();
  const [progress, setProgress] = useState<number>();
  const isGone = useRef(false);
  // The preview is made once, for what was chosen when it opened.
  useEffect(() => {
    previewBulk(action, target).then((result) => {
      if (!result.ok) return setError(result.error);
      // A delete counts jobs that wait or run as matched and skipped: it does not touch them.
      const { matched, skipped, is_complete } = result.data;
      setMatched({ count: matched - skipped, isComplete: is_complete });
    });
    return () => {
      isGone.current = true;
    };
  }, []);
  const act = async () => {
    let cursor: string | null = null;
    let count = 0;
    setProgress(0);
    do {
      const result: Awaited<ReturnType<typeof runBulk>> = await runBulk(action, target, reason, cursor);
      if (!result.ok) {
        setProgress(undefined);
        return setError(result.error);
      }
      count += result.data.succeeded;
      cursor = result.data.is_complete ? null : result.data.next_cursor;
      setProgress(count);
    } while (cursor !== null && !isGone.current);
    toast(`${plural(count, "job")} ${done[count === 1 ? 0 : 1]}.`, {
      action: action === "cancel" ? undoOfAll(waiting) : undefined,
    });
    onDone();
  };
  const about =
    matched === undefined ? "" : `${matched.isComplete ? "" : "more than "}${countText(matched.count)} `;
  const blocked =
    whyNot("operate") ??
    (matched?.count === 0 ? "None of them can be changed so." : matched ? undefined : "Counting…");
  return (
    <ActionDialog
      title={`${verb} jobs`}
      action={
        progress === undefined
          ? `${verb} ${about}${matched?.count === 1 ? "job" : "jobs"}`
          : `${countText(progress)} done…`
      }
      isDanger={action !== "retry"}
      busy={progress !== undefined}
      whyNot={blocked}
      error={error}
      onAct={act}
      onClose={onClose}
    >
      <p>
        {matched === undefined
          ? "Counting what this means…"
          : matched.count === 0
            ? "None of the chosen jobs can be changed so."
            : `This means ${about}of the chosen jobs.`}{" "}
        {says}
      </p>
      <ReasonField value={reason} onInput={setReason} />
    </ActionDialog>
  );
}
