import { useState } from "preact/hooks";
import type { Job } from "../../../ojs/replies/wire-replies.ts";
import { activateJob, cancelJob, enqueueCopy, prioritiseJob, retryJob, runJobNow } from "../../api/jobs.ts";
import { go, href } from "../../state/router.ts";
import { ActionForm } from "../../ui/action-form.tsx";
import { mostAttempts } from "../../ui/attempts.ts";
import { TextArea, TextField } from "../../ui/fields.tsx";
import { limitText } from "../../ui/format.ts";
import { Time } from "../../ui/time.tsx";
import type { FormEnd } from "../../ui/use-form.ts";
import { copyOf } from "./copy-body.ts";
import { undoOf } from "./copy-job.ts";

export interface FormProps extends FormEnd {
  readonly job: Job;
}

export function CancelForm({ job, ...end }: FormProps) {
  const now =
    job.state === "active"
      ? "The handler hears the signal now, and nothing it writes from here on counts."
      : "The job does not start.";
  return (
    <ActionForm
      title={`Cancel ${job.type}`}
      action="Cancel the job"
      isDanger
      act={(reason) => cancelJob(job.id, reason)}
      said="The job is cancelled."
      undo={undoOf(job)}
      does={`${now} A cancelled job stays cancelled; to undo it, a copy is enqueued under a new id.`}
      {...end}
    />
  );
}

export function RetryForm({ job, ...end }: FormProps) {
  const [keeps, setKeeps] = useState(false);
  const most = mostAttempts(job);
  return (
    <ActionForm
      title={`Retry ${job.type}`}
      action="Retry the job"
      blocked={job.state === "discarded" ? undefined : "Only a discarded job is retried."}
      act={(reason) => retryJob(job.id, keeps, reason)}
      said="The job waits again."
      does={`Attempts start anew${most === undefined ? "." : `: ${most} of them.`} ${keeps ? "Its deadline stays." : "wait and total count from now."}`}
      {...end}
    >
      <label class="check">
        <input type="checkbox" checked={keeps} onChange={(event) => setKeeps(event.currentTarget.checked)} />
        Keep the deadline
      </label>
    </ActionForm>
  );
}

export function PriorityForm({ job, ...end }: FormProps) {
  const [text, setText] = useState(String(job.priority));
  const priority = /^-?\d{1,3}$/.test(text.trim()) ? Number(text) : Number.NaN;
  const isValid = priority >= -100 && priority <= 100;
  return (
    <ActionForm
      title={`Priority of ${job.type}`}
      action={isValid ? `Set it to ${priority}` : "Set it"}
      blocked={isValid ? undefined : "Write a number first."}
      act={(reason) => prioritiseJob(job.id, priority, reason)}
      said={`Its priority is ${priority}.`}
      {...end}
    >
      <TextField
        label="Priority, from -100 to 100"
        isFirst
        value={text}
        onInput={setText}
        error={isValid ? undefined : "Write a whole number from -100 to 100."}
        hint="Higher goes first. Jobs of the same priority keep their order."
      />
    </ActionForm>
  );
}

export function RunNowForm({ job, ...end }: FormProps) {
  return (
    <ActionForm
      title={`Run ${job.type} now`}
      action="Run it now"
      act={(reason) => (job.state === "pending" ? activateJob(job.id, reason) : runJobNow(job.id, reason))}
      said="The job is available."
      {...end}
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
    </ActionForm>
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
  const { value, error: wrong } = parsed(text);
  return (
    <ActionForm
      title={`Copy ${job.type}`}
      action="Enqueue the copy"
      right="enqueue"
      blocked={wrong}
      asksReason={false}
      act={() => enqueueCopy(job.id, value)}
      said="A new job is enqueued."
      onClose={onClose}
      onDone={({ id }) => go(href(`jobs/${id}`))}
    >
      <p>
        A new job with an id of its own. This one stays as it is.
        {job.redacted && ' Where it says "[redacted]", the copy gets what this job has there.'}
        {job.timeout_ms !== undefined && ` Its attempts may take ${limitText(job.timeout_ms)}.`}
      </p>
      <TextArea label="The new job" value={text} onInput={setText} rows={14} error={wrong} />
    </ActionForm>
  );
}
