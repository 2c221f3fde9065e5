import { useState } from "preact/hooks";
import type { Job } from "../../../ojs/replies/wire-replies.ts";
import { revealJob } from "../../api/jobs.ts";
import { whyNot } from "../../state/session.ts";
import { Button } from "../../ui/button.tsx";
import { Callout } from "../../ui/callout.tsx";
import { ActionDialog } from "../../ui/dialog.tsx";
import { ReasonField } from "../../ui/fields.tsx";
import { useAction } from "./use-action.ts";

interface RedactedProps {
  readonly job: Job;
  readonly isRevealed: boolean;
  readonly onReveal: (job: Job) => void;
  readonly onHide: () => void;
}

/** Says what is hidden, and shows it to those who may see it. What was revealed is gone with the page. */
export function Redacted({ job, isRevealed, onReveal, onHide }: RedactedProps) {
  const [isAsking, setAsking] = useState(false);
  const paths = (job.redacted ?? []).map((path) => (typeof path === "string" ? path : path.join(".")));
  return (
    <>
      <Callout tone={isRevealed ? "soft" : "off"}>
        <p>
          {isRevealed ? "You see what is hidden from others: " : "Its definition hides "}
          <span class="mono anywhere">{paths.join(", ")}</span>.{" "}
          {isRevealed && "The audit says that you looked."}
        </p>
        {isRevealed ? (
          <Button small onClick={onHide}>
            Hide
          </Button>
        ) : (
          <Button small whyNot={whyNot("operate")} onClick={() => setAsking(true)}>
            Reveal…
          </Button>
        )}
      </Callout>
      {isAsking && <RevealForm job={job} onClose={() => setAsking(false)} onReveal={onReveal} />}
    </>
  );
}

interface RevealProps {
  readonly job: Job;
  readonly onClose: () => void;
  readonly onReveal: (job: Job) => void;
}

function RevealForm({ job, onClose, onReveal }: RevealProps) {
  const [reason, setReason] = useState("");
  const { busy, error, run } = useAction();
  const act = () =>
    run(
      () => revealJob(job.id, reason),
      (whole) => {
        onReveal(whole);
        onClose();
      },
    );
  return (
    <ActionDialog
      title={`Reveal ${job.type}`}
      action="Reveal it to me"
      busy={busy}
      error={error}
      whyNot={whyNot("operate")}
      onAct={act}
      onClose={onClose}
    >
      <p>You see the whole payload and result on this page. The audit keeps your name and your reason.</p>
      <ReasonField value={reason} onInput={setReason} />
    </ActionDialog>
  );
}
