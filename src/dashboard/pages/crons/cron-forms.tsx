import { useState } from "preact/hooks";
import type { Cron } from "../../../ojs/replies/cron-replies.ts";
import { changeCron, deleteCron, setCronEnabled, triggerCron } from "../../api/operations.ts";
import { serverNow } from "../../state/clock.ts";
import { ActionForm } from "../../ui/action-form.tsx";
import { Choice, TextField } from "../../ui/fields.tsx";
import type { FormEnd } from "../../ui/use-form.ts";
import { cronWords, fieldsOf } from "./cron-words.ts";
import { inZone, nextInstants } from "./instants.ts";

interface CronFormProps extends FormEnd {
  readonly cron: Cron;
}

function RunForm({ cron, ...end }: CronFormProps) {
  return (
    <ActionForm
      title={`Run ${cron.name} now`}
      action="Run it now"
      act={(reason) => triggerCron(cron.name, reason)}
      said={({ job_id }) => `Job ${job_id} is enqueued.`}
      does={`Enqueues one ${cron.type} into ${cron.options.queue} at once. Its schedule stays as it is${cron.enabled ? "" : ", and it stays paused"}.`}
      {...end}
    />
  );
}

function PauseForm({ cron, ...end }: CronFormProps) {
  return (
    <ActionForm
      title={`Pause ${cron.name}`}
      action="Pause the cron"
      act={(reason) => setCronEnabled(cron.name, false, reason)}
      said={`Cron ${cron.name} is paused.`}
      does="It enqueues nothing until somebody resumes it. Instants that pass meanwhile are not made up for."
      {...end}
    />
  );
}

function ResumeForm({ cron, ...end }: CronFormProps) {
  return (
    <ActionForm
      title={`Resume ${cron.name}`}
      action="Resume the cron"
      act={(reason) => setCronEnabled(cron.name, true, reason)}
      said={`Cron ${cron.name} goes on.`}
      does={`It goes on with its next instant after now: ${cronWords(cron.expression)}.`}
      {...end}
    />
  );
}

function ChangeForm({ cron, ...end }: CronFormProps) {
  const [expression, setExpression] = useState(cron.expression);
  const [zone, setZone] = useState(cron.timezone);
  const [overlap, setOverlap] = useState<string>(cron.overlap_policy);
  const isRead = fieldsOf(expression) !== null;
  const [first] = isRead ? nextInstants(expression, zone, serverNow(), 1) : [];
  return (
    <ActionForm
      title={`Change ${cron.name}`}
      action="Change the schedule"
      blocked={isRead ? undefined : "Write five fields, six with seconds in front, or @daily and the like."}
      act={(reason) => changeCron(cron.name, { expression, timezone: zone, overlap_policy: overlap }, reason)}
      said={`Cron ${cron.name} has a new schedule.`}
      {...end}
    >
      <div class="f2">
        <TextField label="Expression" value={expression} onInput={setExpression} isMono isFirst />
        <TextField label="Zone" value={zone} onInput={setZone} hint="An IANA name such as Europe/Berlin." />
      </div>
      <Choice
        label="When its last job has not ended"
        value={overlap}
        options={[
          ["allow", "start another beside it"],
          ["skip", "leave this one out"],
          ["cancel_previous", "cancel the last one"],
        ]}
        onChange={setOverlap}
      />
      <p>
        {isRead ? `That is ${cronWords(expression)}.` : "This is no cron expression."}
        {first && ` Next: ${inZone(zone, first.at)} in ${zone}.`}
        {isRead && !first && " This browser cannot say when that is next; the server will."}
      </p>
    </ActionForm>
  );
}

function DeleteForm({ cron, ...end }: CronFormProps) {
  return (
    <ActionForm
      title={`Delete ${cron.name}`}
      action="Delete the cron"
      isDanger
      act={(reason) => deleteCron(cron.name, reason)}
      said={`Cron ${cron.name} is deleted.`}
      does="It enqueues nothing any more, and its history is gone. Jobs that it enqueued go on. Code that puts it again at its start brings it back."
      {...end}
    />
  );
}

export const CRON_FORMS = {
  run: RunForm,
  pause: PauseForm,
  resume: ResumeForm,
  change: ChangeForm,
  delete: DeleteForm,
} as const;
export type CronFormName = keyof typeof CRON_FORMS;
