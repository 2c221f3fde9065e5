import { useState } from "preact/hooks";
import type { Job } from "../../../ojs/replies/wire-replies.ts";
import { revealJob } from "../../api/jobs.ts";
import { whyNot } from "../../state/session.ts";
import { ActionForm } from "../../ui/action-form.tsx";
import { Button } from "../../ui/button.tsx";
import { Callout } from "../../ui/callout.tsx";

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
          {isRevealed ? "You see what is hidden from others: " : "Hidden from view: "}
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
      {isAsking && (
        <ActionForm
          title={`Reveal ${job.type}`}
          action="Reveal it to me"
          act={(reason) => revealJob(job.id, reason)}
          does="You see the whole payload and result on this page. The audit keeps your name and your reason."
          onClose={() => setAsking(false)}
          onDone={(whole) => {
            onReveal(whole);
            setAsking(false);
          }}
        />
      )}
    </>
  );
}
