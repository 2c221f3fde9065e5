import { useState } from "preact/hooks";
import type { Queue, QueueConfiguration } from "../../../ojs/replies/wire-replies.ts";
import { configureQueue, pauseQueue, purgeQueue, resumeQueue } from "../../api/operations.ts";
import { ActionForm } from "../../ui/action-form.tsx";
import { Choice, TextField } from "../../ui/fields.tsx";
import { limitText, plural, readLimit } from "../../ui/format.ts";
import type { FormEnd } from "../../ui/use-form.ts";
import { BulkForm } from "../jobs/bulk-form.tsx";

export interface QueueFormProps extends FormEnd {
  readonly queue: Queue;
}

function PauseForm({ queue, ...end }: QueueFormProps) {
  const { name, counts } = queue;
  return (
    <ActionForm
      title={`Pause ${name}`}
      action="Pause the queue"
      act={(reason) => pauseQueue(name, reason)}
      said={`Queue ${name} is paused.`}
      does={`No worker gets another job of it. ${plural(counts.active, "job runs", "jobs run")} on to the end, and new jobs are taken in. Deadlines run on: ${plural(counts.available, "job that waits", "jobs that wait")} may expire.`}
      {...end}
    />
  );
}

function ResumeForm({ queue, ...end }: QueueFormProps) {
  const { name, counts } = queue;
  return (
    <ActionForm
      title={`Resume ${name}`}
      action="Resume the queue"
      act={(reason) => resumeQueue(name, reason)}
      said={`Queue ${name} hands out jobs again.`}
      does={`Workers get its jobs again, at once: ${plural(counts.available, "job waits", "jobs wait")}.`}
      {...end}
    />
  );
}

/** Counts first how many that is. */
function RetryForm({ queue, ...end }: QueueFormProps) {
  const filter = { state: "discarded", queue: queue.name };
  return <BulkForm action="retry" target={{ filter }} {...end} />;
}

const STATES = [
  ["available", "that wait"],
  ["scheduled", "that are scheduled"],
  ["retryable", "that are to be retried"],
  ["completed", "that completed"],
  ["discarded", "that were discarded"],
  ["cancelled", "that were cancelled"],
] as const;

function PurgeForm({ queue, ...end }: QueueFormProps) {
  const [state, setState] = useState<string>("available");
  const { name, counts } = queue;
  const count = counts[state as keyof typeof counts] ?? 0;
  const isOver = state === "completed" || state === "discarded" || state === "cancelled";
  return (
    <ActionForm
      title={`Delete jobs of ${name}`}
      action="Delete them for good"
      isDanger
      act={(reason) => purgeQueue(name, [state], reason)}
      said={({ purged_count, is_complete }) =>
        `${plural(purged_count, "job is", "jobs are")} deleted.${is_complete ? "" : " There are more: delete again to go on."}`
      }
      {...end}
    >
      <Choice
        label="Jobs"
        value={state}
        options={STATES.map(([value, text]) => [value, text])}
        onChange={setState}
      />
      <p>
        {isOver
          ? `Of those, ${plural(count, "job")} ended in the last 24 hours; older ones are deleted too.`
          : `That is about ${plural(count, "job")}.`}{" "}
        What is deleted cannot be had back. Jobs that run are not touched.
      </p>
    </ActionForm>
  );
}

const LIMITS = [
  ["enqueue_ttl_ms", "wait"],
  ["timeout_ms", "attempt"],
  ["grace_period_ms", "grace"],
  ["total_timeout_ms", "total"],
] as const;

const shown = (value: number | string | undefined) =>
  typeof value === "number" ? limitText(value) : (value ?? "");

/** A field that was emptied takes its rule back; one that was not touched stays as it is. */
function changesOf(before: Fields, after: Fields): Record<string, unknown> {
  const changes: Record<string, unknown> = {};
  const isChanged = (name: keyof Fields) => before[name] !== after[name];
  if (isChanged("concurrency"))
    changes.concurrency = after.concurrency === "" ? null : Number(after.concurrency);
  if (isChanged("most") || isChanged("strategy"))
    changes.backpressure =
      after.most === "" ? null : { max_depth: Number(after.most), strategy: after.strategy };
  if (LIMITS.some(([name]) => isChanged(name))) {
    const limits = LIMITS.flatMap(([name]) =>
      after[name] === "" ? [] : [[name, readLimit(after[name]) ?? after[name]] as const],
    );
    changes.timeouts = limits.length === 0 ? null : Object.fromEntries(limits);
  }
  return changes;
}

type Fields = Record<"concurrency" | "most" | "strategy" | (typeof LIMITS)[number][0], string>;

function fieldsOf({ concurrency, backpressure, timeouts = {} }: QueueConfiguration): Fields {
  return {
    concurrency: concurrency === undefined ? "" : String(concurrency),
    most: backpressure ? String(backpressure.max_depth) : "",
    strategy: backpressure?.strategy ?? "reject",
    ...(Object.fromEntries(LIMITS.map(([name]) => [name, shown(timeouts[name])])) as Record<
      (typeof LIMITS)[number][0],
      string
    >),
  };
}

const isCount = (text: string) => text === "" || /^[1-9]\d{0,6}$/.test(text);
const isLimit = (text: string) => text === "" || text === "none" || readLimit(text) !== undefined;

function RulesForm({ queue, ...end }: QueueFormProps) {
  const [before] = useState(() => fieldsOf(queue.configuration as QueueConfiguration));
  const [after, setAfter] = useState(before);
  const set = (name: keyof Fields) => (value: string) => setAfter({ ...after, [name]: value.trim() });
  const changes = changesOf(before, after);
  const isValid =
    isCount(after.concurrency) && isCount(after.most) && LIMITS.every(([name]) => isLimit(after[name]));
  return (
    <ActionForm
      title={`Rules of ${queue.name}`}
      action="Set the rules"
      blocked={
        !isValid
          ? "Correct the marked fields."
          : Object.keys(changes).length === 0
            ? "Nothing is changed."
            : undefined
      }
      act={(reason) => configureQueue(queue.name, changes, reason)}
      said={`Queue ${queue.name} has new rules.`}
      {...end}
    >
      <p>
        They hold for every process within seconds. A job that says otherwise itself keeps its own limits.
      </p>
      <div class="f2">
        <TextField
          label="Jobs at once"
          value={after.concurrency}
          onInput={set("concurrency")}
          placeholder="no bound"
          error={isCount(after.concurrency) ? undefined : "A whole number from 1, or nothing."}
        />
        <TextField
          label="Jobs that may wait"
          value={after.most}
          onInput={set("most")}
          placeholder="no bound"
          error={isCount(after.most) ? undefined : "A whole number from 1, or nothing."}
        />
        {LIMITS.map(([name, label]) => (
          <TextField
            key={name}
            label={label}
            value={after[name]}
            onInput={set(name)}
            placeholder="as the job says"
            isMono
            error={isLimit(after[name]) ? undefined : "Such as 30s, 5m or 1h30m; or none."}
          />
        ))}
        <Choice
          label="When it is full"
          value={after.strategy}
          options={[
            ["reject", "refuse new jobs"],
            ["drop_oldest", "discard the oldest"],
          ]}
          onChange={set("strategy")}
        />
      </div>
    </ActionForm>
  );
}

export const QUEUE_FORMS = {
  pause: PauseForm,
  resume: ResumeForm,
  purge: PurgeForm,
  rules: RulesForm,
  retry: RetryForm,
} as const;
export type QueueFormName = keyof typeof QUEUE_FORMS;
