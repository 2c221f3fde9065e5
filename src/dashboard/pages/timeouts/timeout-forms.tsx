import { useState } from "preact/hooks";
import type { Timeout } from "../../../ojs/replies/wire-replies.ts";
import type { Result } from "../../api/client.ts";
import { requeueTimeout, rescheduleTimeout, revokeTimeout } from "../../api/sagas-and-timeouts.ts";
import { serverNow } from "../../state/clock.ts";
import { ActionForm } from "../../ui/action-form.tsx";
import { TextField } from "../../ui/fields.tsx";
import { durationText, exactText, plural, readLimit } from "../../ui/format.ts";
import type { FormEnd } from "../../ui/use-form.ts";

export type TimeoutFormName = "revoke" | "reschedule" | "requeue";

/** What is asked for, and of which timeouts. */
export interface Asked {
  readonly name: TimeoutFormName;
  readonly timeouts: readonly Timeout[];
}

interface TimeoutFormProps extends FormEnd {
  readonly name: TimeoutFormName;
  readonly ids: readonly string[];
  /** How the timeout is called, or where they go. */
  readonly what: string;
  readonly dueAt?: string | undefined;
}

/** A time as it was written: a stretch from now, or an instant. */
function readWhen(text: string, now: number): number | undefined {
  const span = readLimit(text);
  if (span !== undefined) return now + span;
  if (!/^\d{4}-\d{2}-\d{2}/.test(text.trim())) return undefined;
  const at = Date.parse(text.trim().replace(/^(\S+) (\d)/, "$1T$2"));
  return Number.isNaN(at) ? undefined : at;
}

/** One after the other: the first refusal stops, and says which. */
async function each(
  ids: readonly string[],
  act: (id: string) => Promise<Result<unknown>>,
): Promise<Result<unknown>> {
  for (const id of ids) {
    const result = await act(id);
    if (!result.ok) return result;
  }
  return { ok: true, data: null };
}

export function TimeoutForm({ name, ids, what, dueAt, onClose, onDone }: TimeoutFormProps) {
  const [text, setText] = useState("");
  const at = readWhen(text, serverNow());
  const count = ids.length;
  const subject = count === 1 ? what : plural(count, "timeout");
  const close = { onClose, onDone };
  if (name === "revoke")
    return (
      <ActionForm
        title={`Revoke ${subject}`}
        action={count === 1 ? "Revoke the timeout" : `Revoke ${plural(count, "timeout")}`}
        isDanger
        act={(reason) => each(ids, (id) => revokeTimeout(id, reason))}
        said={count === 1 ? `${what} is revoked.` : `${plural(count, "timeout is", "timeouts are")} revoked.`}
        {...close}
      >
        <p>
          It will not be handled, also if it is in hand for a saga just now. It cannot be had back; its saga
          may ask for another one.
        </p>
      </ActionForm>
    );
  if (name === "requeue")
    return (
      <ActionForm
        title={`Requeue ${subject}`}
        action={count === 1 ? "Requeue the timeout" : `Requeue ${plural(count, "timeout")}`}
        act={(reason) => each(ids, (id) => requeueTimeout(id, reason))}
        said={
          count === 1
            ? `${what} is tried again.`
            : `${plural(count, "timeout is", "timeouts are")} tried again.`
        }
        {...close}
      >
        <p>It is due at once, with all its tries. See that what refused it works before you do.</p>
      </ActionForm>
    );
  return (
    <ActionForm
      title={`Reschedule ${subject}`}
      action="Reschedule the timeout"
      blocked={at === undefined ? "Say when." : undefined}
      act={(reason) => each(ids, (id) => rescheduleTimeout(id, at as number, reason))}
      said={`${subject} has a new time.`}
      {...close}
    >
      <TextField
        label="Due"
        value={text}
        onInput={setText}
        placeholder="2h, or 2026-11-17 09:00"
        isFirst
        hint="A time from now, or a day and a time here; with Z at its end in UTC."
        error={
          text.trim() !== "" && at === undefined ? "Such as 30m, 2h, 3d, or 2026-11-17 09:00." : undefined
        }
      />
      <p class="anywhere">
        {at === undefined
          ? dueAt && `Now it is due ${exactText(Date.parse(dueAt)).split("\n")[0]}.`
          : `That is ${exactText(at).split("\n")[0]}, ${at > serverNow() ? `in ${durationText(at - serverNow())}` : "which is at once"}.`}
      </p>
    </ActionForm>
  );
}
