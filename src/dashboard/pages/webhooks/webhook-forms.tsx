import { useState } from "preact/hooks";
import type { Webhook } from "../../../ojs/replies/settings-replies.ts";
import { changeWebhook, createWebhook, deleteWebhook, redeliver, rotateSecret } from "../../api/settings.ts";
import { ActionForm } from "../../ui/action-form.tsx";
import { CopyButton } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Choice, TextField } from "../../ui/fields.tsx";
import { plural } from "../../ui/format.ts";
import type { FormEnd } from "../../ui/use-form.ts";
import { shortUrl } from "./webhook-look.ts";

interface FormProps {
  readonly webhook: Webhook;
  readonly onClose: () => void;
  /** With a secret that is shown once, where the server made one. */
  readonly onDone: (change: { readonly isGone?: boolean; readonly secret?: string | undefined }) => void;
}

const EVENTS = [
  "job.failed job.discarded",
  "job.completed",
  "job.*",
  "workflow.*",
  "queue.paused queue.resumed",
  "*",
];
const listOf = (text: string) => text.split(/[\s,]+/).filter((one) => one !== "");

/** What a subscription can be told: where to, which events, of which queues and types. */
function Fields({ of, set }: { readonly of: Asked; readonly set: (asked: Asked) => void }) {
  const field = (name: keyof Asked) => (value: string) => set({ ...of, [name]: value });
  return (
    <>
      <TextField
        label="URL"
        value={of.url}
        onInput={field("url")}
        isMono
        isFirst
        placeholder="https://example.com/hooks/jobs"
        hint="A public address over https. Others need to be allowed when the server starts."
      />
      <TextField
        label="Events"
        value={of.events}
        onInput={field("events")}
        isMono
        options={EVENTS}
        hint="Names with spaces between them: job.failed, job.*, or * for all."
      />
      <div class="f2">
        <TextField
          label="Only of queues"
          value={of.queues}
          onInput={field("queues")}
          placeholder="all"
          isMono
        />
        <TextField label="Only of types" value={of.types} onInput={field("types")} placeholder="all" isMono />
      </div>
      <Choice
        label="Order"
        value={of.ordered}
        options={[
          ["false", "as fast as possible, events may overtake each other"],
          ["true", "events of one job one after the other"],
        ]}
        onChange={field("ordered")}
      />
    </>
  );
}

type Asked = Record<"url" | "events" | "queues" | "types" | "ordered", string>;

const askedOf = (webhook?: Webhook): Asked => ({
  url: webhook?.url ?? "",
  events: webhook?.events.join(" ") ?? "job.failed job.discarded",
  queues: webhook?.filter?.queues?.join(" ") ?? "",
  types: webhook?.filter?.job_types?.join(" ") ?? "",
  ordered: String(webhook?.ordered ?? false),
});

function bodyOf({ url, events, queues, types, ordered }: Asked) {
  const filter = { queues: listOf(queues), job_types: listOf(types) };
  const isFiltered = filter.queues.length + filter.job_types.length > 0;
  return {
    url: url.trim(),
    events: listOf(events),
    ordered: ordered === "true",
    filter: isFiltered
      ? {
          ...(filter.queues.length > 0 && { queues: filter.queues }),
          ...(filter.job_types.length > 0 && { job_types: filter.job_types }),
        }
      : null,
  };
}

const blockedBy = ({ url, events }: Asked) =>
  url.trim() === ""
    ? "Say where to."
    : listOf(events).length === 0
      ? "Name an event, or * for all."
      : undefined;

export function NewForm({
  onClose,
  onDone,
}: Omit<FormProps, "webhook" | "onDone"> & {
  readonly onDone: (made: { readonly id: string; readonly secret?: string }) => void;
}) {
  const [asked, setAsked] = useState(() => askedOf());
  return (
    <ActionForm
      title="Subscribe an endpoint"
      action="Subscribe"
      blocked={blockedBy(asked)}
      act={(reason) => createWebhook(bodyOf(asked), reason)}
      said="Events are sent to it from now on."
      onClose={onClose}
      onDone={onDone}
    >
      <Fields of={asked} set={setAsked} />
    </ActionForm>
  );
}

function ChangeForm({ webhook, onClose, onDone }: FormProps) {
  const [asked, setAsked] = useState(() => askedOf(webhook));
  return (
    <ActionForm
      title="Change the subscription"
      action="Change it"
      blocked={blockedBy(asked)}
      act={(reason) => changeWebhook(webhook.id, bodyOf(asked), reason)}
      said="The subscription is changed."
      onClose={onClose}
      onDone={() => onDone({})}
    >
      <Fields of={asked} set={setAsked} />
      <p class="t3">Deliveries that already wait keep their events and go to the new URL.</p>
    </ActionForm>
  );
}

function SwitchForm({ webhook, onClose, onDone }: FormProps) {
  const { active, id, url } = webhook;
  return (
    <ActionForm
      title={`${active ? "Switch off" : "Switch on"} ${shortUrl(url)}`}
      action={active ? "Switch it off" : "Switch it on"}
      act={(reason) => changeWebhook(id, { active: !active }, reason)}
      said={active ? "Nothing is sent to it." : "Events are sent to it from now on."}
      does={
        active
          ? "Nothing is sent until somebody switches it on. What happens meanwhile is not sent later."
          : "It gets events from now on; those of the time while it was off are not sent."
      }
      onClose={onClose}
      onDone={() => onDone({})}
    />
  );
}

function RotateForm({ webhook, onClose, onDone }: FormProps) {
  const [overlap, setOverlap] = useState("P1D");
  return (
    <ActionForm
      title="Give it a new secret"
      action="Make a new secret"
      act={(reason) => rotateSecret(webhook.id, overlap, reason)}
      said="There is a new secret."
      onClose={onClose}
      onDone={({ secret }) => onDone({ secret })}
    >
      <p>The new secret is shown once. Give it to the receiver while calls are signed with both.</p>
      <Choice
        label="Calls are signed with both for"
        value={overlap}
        options={[
          ["PT0S", "no time: the old one leaked"],
          ["PT2H", "2 hours"],
          ["P1D", "a day"],
          ["P7D", "a week"],
        ]}
        onChange={setOverlap}
      />
    </ActionForm>
  );
}

function DeleteForm({ webhook, onClose, onDone }: FormProps) {
  return (
    <ActionForm
      title={`Delete the subscription of ${shortUrl(webhook.url)}`}
      action="Delete it"
      isDanger
      act={(reason) => deleteWebhook(webhook.id, reason)}
      said="The subscription is deleted."
      does={`Its deliveries that wait are cancelled, and its counts (${plural(webhook.success_count, "call")} that succeeded) are gone. Switch it off instead if it is to come back.`}
      onClose={onClose}
      onDone={() => onDone({ isGone: true })}
    />
  );
}

export const WEBHOOK_FORMS = {
  change: ChangeForm,
  switch: SwitchForm,
  rotate: RotateForm,
  delete: DeleteForm,
} as const;
export type WebhookFormName = keyof typeof WEBHOOK_FORMS;

export function RedeliverForm({ id, ...end }: FormEnd & { readonly id: string }) {
  return (
    <ActionForm
      title="Send it again"
      action="Send it again"
      act={(reason) => redeliver(id, reason)}
      said="It is sent again."
      does="The endpoint gets the same events again, under the same delivery id, so that it can tell."
      {...end}
    />
  );
}

/** The one time at which a secret can be read. */
export function SecretDialog({ secret, onClose }: { readonly secret: string; readonly onClose: () => void }) {
  return (
    <Dialog title="Its secret" onClose={onClose}>
      <div class="in">
        <p>Calls are signed with it. It is not shown again: copy it to the receiver now.</p>
        <p class="code secret">
          <span class="anywhere">{secret}</span> <CopyButton text={secret} what="the secret" />
        </p>
      </div>
      <footer>
        <button type="button" class="btn primary" onClick={onClose}>
          I have it
        </button>
      </footer>
    </Dialog>
  );
}
