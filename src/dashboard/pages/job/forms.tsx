import { useState } from "preact/hooks";
import type { Job } from "../../../ojs/replies/wire-replies.ts";
import { activateJob, cancelJob, enqueueCopy, prioritiseJob, retryJob, runJobNow } from "../../api/jobs.ts";
import { go, href } from "../../state/router.ts";
import { whyNot } from "../../state/session.ts";
import { toast } from "../../state/toasts.ts";
import { mostAttempts } from "../../ui/attempts.ts";
import { ActionDialog } from "../../ui/dialog.tsx";
import { ReasonField, TextArea, TextField } from "../../ui/fields.tsx";
import { limitText } from "../../ui/format.ts";
import { Time } from "../../ui/time.tsx";
import type { FormEnd } from "../../ui/use-form.ts";
import { copyOf } from "./copy-body.ts";
import { undoOf } from "./copy-job.ts";
import { useAction } from "./use-action.ts";

export interface FormProps extends FormEnd {
  readonly job: Job;
}

export function CancelForm({ job, onClose, onDone }: FormProps) {
  const [reason, setReason] = useState("");
  const { busy, error, run } = useAction();
  const act = () =>
    run(
      () => cancelJob(job.id, reason),
      () => {
        toast("The job is cancelled.", { action: undoOf(job) });
        onDone();
      },
    );
  return (
    <ActionDialog
      title={`Cancel ${job.type}`}
      action="Cancel the job"
      isDanger
      busy={busy}
      error={error}
      whyNot={whyNot("operate")}
      onAct={act}
      onClose={onClose}
    >
      <p>
        {job.state === "active"
          ? "The handler hears the signal now, and nothing it writes from here on counts."
          : "The job does not start."}{" "}
        A cancelled job stays cancelled; to undo it, a copy is enqueued under a new id.
      </p>
      <ReasonField value={reason} onInput={setReason} />
    </ActionDialog>
  );
}

export function RetryForm({ job, onClose, onDone }: FormProps) {
  const [reason, setReason] = useState("");
  const [keeps, setKeeps] = useState(false);
  const { busy, error, run } = useAction();
  const act = () =>
    run(
      () => retryJob(job.id, keeps, reason),
      () => {
        toast("The job waits again.");
        onDone();
      },
    );
  const most = mostAttempts(job);
  const blocked =
    whyNot("operate") ?? (job.state === "discarded" ? undefined : "Only a discarded job is retried.");
  return (
    <ActionDialog
      title={`Retry ${job.type}`}
      action="Retry the job"
      busy={busy}
      error={error}
      whyNot={blocked}
      onAct={act}
      onClose={onClose}
    >
      <p>
        Attempts start anew{most === undefined ? "." : `: ${most} of them.`}{" "}
        {keeps ? "Its deadline stays." : "wait and total count from now."}
      </p>
      <label class="check">
        <input type="checkbox" checked={keeps} onChange={(event) => setKeeps(event.currentTarget.checked)} />
        Keep the deadline
      </label>
      <ReasonField value={reason} onInput={setReason} />
    </ActionDialog>
  );
}

export function PriorityForm({ job, onClose, onDone }: FormProps) {
  const [text, setText] = useState(String(job.priority));
  const [reason, setReason] = useState("");
  const { busy, error, run } = useAction();
  const priority = /^-?\d{1,3}$/.test(text.trim()) ? Number(text) : Number.NaN;
  const isValid = priority >= -100 && priority <= 100;
  const act = () =>
    run(
      () => prioritiseJob(job.id, priority, reason),
      () => {
        toast(`Its priority is ${priority}.`);
        onDone();
      },
    );
  return (
    <ActionDialog
      title={`Priority of ${job.type}`}
      action={isValid ? `Set it to ${priority}` : "Set it"}
      busy={busy}
      error={error}
      whyNot={whyNot("operate") ?? (isValid ? undefined : "Write a number first.")}
      onAct={act}
      onClose={onClose}
    >
      <TextField
        label="Priority, from -100 to 100"
        isFirst
        value={text}
        onInput={setText}
        error={isValid ? undefined : "Write a whole number from -100 to 100."}
        hint="Higher goes first. Jobs of the same priority keep their order."
      />
      <ReasonField value={reason} onInput={setReason} />
    </ActionDialog>
  );
}

export function RunNowForm({ job, onClose, onDone }: FormProps) {
  const [reason, setReason] = useState("");
  const { busy, error, run } = useAction();
  const act = () =>
    run(
      () => (job.state === "pending" ? activateJob(job.id, reason) : runJobNow(job.id, reason)),
      () => {
        toast("The job is available.");
        onDone();
      },
    );
  return (
    <ActionDialog
      title={`Run ${job.type} now`}
      action="Run it now"
      busy={busy}
      error={error}
      whyNot={whyNot("operate")}
      onAct={act}
      onClose={onClose}
    >
      <p>
        {job.state === "scheduled" && job.scheduled_at && (
          <>
            It would start <Time at={job.scheduled_at} as="when" />.{" "}
          </>
        )}
        {job.state === "retryable" && job.next_attempt_at && (
          <>
            Its next attempt would start <Time at={job.next_attempt_at} as="when" />.{" "}
          </>
        )}
        It becomes available at once. A worker takes it as soon as it has a free slot, and its limit, if it
        has one, has room.
      </p>
      <ReasonField value={reason} onInput={setReason} />
    </ActionDialog>
  );
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function parsed(text: string): { readonly value?: Record<string, unknown>; readonly error?: string } {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? { value } : { error: "Write an object with type and args." };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

export function CopyForm({ job, onClose }: FormProps) {
  const [text, setText] = useState(JSON.stringify(copyOf(job), null, 2));
  const { busy, error, run } = useAction();
  const { value, error: wrong } = parsed(text);
  const act = () =>
    run(
      () => enqueueCopy(job.id, value),
      (made) => {
        toast("A new job is enqueued.");
        go(href(`jobs/${made.id}`));
      },
    );
  return (
    <ActionDialog
      title={`Copy ${job.type}`}
      action="Enqueue the copy"
      busy={busy}
      error={error}
      whyNot={whyNot("enqueue") ?? wrong}
      onAct={act}
      onClose={onClose}
    >
      <p>
        A new job with an id of its own. This one stays as it is.
        {job.redacted && ' Where it says "[redacted]", the copy gets what this job has there.'}
        {job.timeout_ms !== undefined && ` Its attempts may take ${limitText(job.timeout_ms)}.`}
      </p>
      <TextArea label="The new job" value={text} onInput={setText} rows={14} error={wrong} />
    </ActionDialog>
  );
}
