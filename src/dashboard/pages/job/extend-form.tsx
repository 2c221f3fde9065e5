import { useState } from "preact/hooks";
import type { Job } from "../../../ojs/replies/wire-replies.ts";
import type { ApiError } from "../../api/client.ts";
import { extendJob } from "../../api/jobs.ts";
import { useKeys } from "../../state/keys.ts";
import { query, setQuery } from "../../state/router.ts";
import { whyNot } from "../../state/session.ts";
import { toast } from "../../state/toasts.ts";
import { isLastAttempt } from "../../ui/attempts.ts";
import { Button } from "../../ui/button.tsx";
import { Callout } from "../../ui/callout.tsx";
import { TextField } from "../../ui/fields.tsx";
import { clockText, limitText, readLimit } from "../../ui/format.ts";
import type { Limits } from "./timeline/limits.ts";
import type { TimelineModel } from "./timeline/model.ts";

const CLOSED = { form: null, attempt: null, total: null };

/** Docked under the timeline, so that what changes and what it leads to are seen together. */
export function ExtendForm({
  job,
  before,
  after,
  onDone,
}: {
  readonly job: Job;
  readonly before: Limits;
  readonly after: TimelineModel;
  readonly onDone: () => void;
}) {
  const [reason, setReason] = useState("");
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const attemptText = query.value.get("attempt") ?? "";
  const totalText = query.value.get("total") ?? "";
  const attempt = readLimit(attemptText);
  const total = readLimit(totalText);
  const close = () => setQuery(CLOSED, { isStep: false });
  useKeys([{ keys: "Escape", says: "Close the form", run: close }]);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    const result = await extendJob(job.id, { attempt, total }, reason);
    setBusy(false);
    if (!result.ok) return setError(result.error);
    toast("The limits are changed.");
    close();
    onDone();
  };
  const parts = partsOf(attempt, total);
  const blocked = whyNot("operate") ?? (parts.length === 0 ? "Write a new length first." : undefined);
  return (
    <form class="extend" aria-label="Extend limits" onSubmit={submit}>
      <TextField
        label="attempt"
        isMono
        isFirst
        value={attemptText}
        placeholder={limitText(before.attempt)}
        error={wrong(attemptText, attempt)}
        onInput={(value) => setQuery({ attempt: value }, { isStep: false })}
      />
      <TextField
        label="total"
        isMono
        value={totalText}
        placeholder={limitText(before.total)}
        error={wrong(totalText, total)}
        onInput={(value) => setQuery({ total: value }, { isStep: false })}
      />
      <TextField
        label="Reason, for the audit"
        value={reason}
        max={500}
        placeholder="Large month, page 41 is slow"
        class="grow"
        onInput={setReason}
      />
      <span class="btns">
        <Button onClick={close}>Keep as it is</Button>
        <Button kind="primary" submit busy={isBusy} whyNot={blocked}>
          {parts.length === 0 ? "Extend" : `Extend ${parts.join(" and ")}`}
        </Button>
      </span>
      {error && <Callout tone="force">{error.message}</Callout>}
      <p>{costOf(after, before)}</p>
    </form>
  );
}

const partsOf = (attempt: number | undefined, total: number | undefined) => [
  ...(attempt === undefined ? [] : [`attempt to ${limitText(attempt)}`]),
  ...(total === undefined ? [] : [`total to ${limitText(total)}`]),
];

const wrong = (text: string, value: number | undefined) =>
  text !== "" && value === undefined ? "Write it as 90s, 5m or 1h30m." : undefined;

/** What the new limits lead to, in words. */
function costOf({ limits, isPreview, prediction, running, job }: TimelineModel, before: Limits): string {
  if (!isPreview)
    return "Limits count from the start of the attempt and from the creation of the job. The timeline shows what would change.";
  const texts: string[] = [];
  if (running && limits.softAt !== null) {
    const kill = limits.hardAt === null ? "" : `, kill ${clockText(limits.hardAt)}`;
    texts.push(`The dashed part is the preview: signal ${clockText(limits.softAt)}${kill}.`);
  }
  if (limits.totalAt !== null) {
    const isSame = limits.totalAt === before.totalAt;
    texts.push(`Total ${isSame ? "stays at" : "moves to"} ${clockText(limits.totalAt)}.`);
    if (running && limits.softAt === limits.totalAt) texts.push("Total cuts the attempt.");
  }
  if (prediction && !prediction.fits) texts.push("If this attempt fails, no further one fits.");
  else if (isLastAttempt(job)) texts.push("It is the last attempt.");
  return texts.join(" ");
}
