import { useState } from "preact/hooks";
import type { Tenant } from "../../../ojs/replies/settings-replies.ts";
import { putTenantLimits, removeTenant } from "../../api/settings.ts";
import { ActionForm } from "../../ui/action-form.tsx";
import { TextField } from "../../ui/fields.tsx";
import { readLimit } from "../../ui/format.ts";
import type { FormEnd } from "../../ui/use-form.ts";
import { periodText } from "../limits/page.tsx";

interface FormProps extends FormEnd {
  /** Left out: a new one. */
  readonly tenant?: Tenant;
}

const isCount = (text: string) => text === "" || /^[1-9]\d{0,8}$/.test(text);
const NAME = /^[A-Za-z0-9._:-]{1,64}$/;
const textOf = (value: number | null | undefined) => (value == null ? "" : String(value));
const COUNT = "A whole number from 1, or nothing.";

interface Asked {
  readonly active: string;
  readonly waiting: string;
  readonly starts: string;
  readonly per: string;
  readonly bytes: string;
}

function askedOf(limits: Tenant["limits"] | undefined): Asked {
  const rate = limits?.max_enqueue_rate;
  return {
    active: textOf(limits?.max_concurrency),
    waiting: textOf(limits?.max_queue_depth),
    starts: textOf(rate?.limit),
    per: rate ? periodText(rate.period) : "1m",
    bytes: textOf(limits?.max_payload_bytes),
  };
}

const numberOf = (text: string) => (text === "" ? null : Number(text));

function limitsOf({ active, waiting, starts, per, bytes }: Asked) {
  const rate =
    starts === "" ? null : { limit: Number(starts), period: `PT${(readLimit(per) ?? 0) / 1_000}S` };
  return {
    max_concurrency: numberOf(active),
    max_queue_depth: numberOf(waiting),
    max_enqueue_rate: rate,
    max_payload_bytes: numberOf(bytes),
  };
}

export function LimitsForm({ tenant, ...end }: FormProps) {
  const [name, setName] = useState(tenant?.tenant_id ?? "");
  const [asked, setAsked] = useState(() => askedOf(tenant?.limits));
  const set = (field: keyof Asked) => (value: string) => setAsked({ ...asked, [field]: value.trim() });
  const isPerValid = asked.starts === "" || readLimit(asked.per) !== undefined;
  const isValid = [asked.active, asked.waiting, asked.starts, asked.bytes].every(isCount) && isPerValid;
  const count = (label: string, field: "active" | "waiting" | "starts" | "bytes") => (
    <TextField
      label={label}
      value={asked[field]}
      onInput={set(field)}
      placeholder="no bound"
      error={isCount(asked[field]) ? undefined : COUNT}
    />
  );
  return (
    <ActionForm
      title={tenant ? `Limits of ${tenant.tenant_id}` : "A new tenant"}
      action={tenant ? "Set the limits" : "Create it"}
      blocked={
        !NAME.test(name)
          ? "Name it with up to 64 of the characters A-Z a-z 0-9 . _ : -"
          : isValid
            ? undefined
            : "Correct the marked fields."
      }
      act={(reason) => putTenantLimits(name, limitsOf(asked), reason)}
      said={`Tenant ${name} has these limits.`}
      {...end}
    >
      <p>They hold over all queues of the tenant, for every process within five seconds.</p>
      {!tenant && <TextField label="Name" value={name} onInput={setName} isMono isFirst placeholder="acme" />}
      <div class="f2">
        {count("Jobs at once", "active")}
        {count("Jobs that may wait", "waiting")}
        {count("New jobs", "starts")}
        <TextField
          label="in each"
          value={asked.per}
          onInput={set("per")}
          isMono
          error={isPerValid ? undefined : "Such as 1s, 1m or 1h."}
        />
        {count("Bytes of a payload", "bytes")}
      </div>
    </ActionForm>
  );
}

export function RemoveForm({ tenant, ...end }: Required<FormProps>) {
  return (
    <ActionForm
      title={`Remove ${tenant.tenant_id}`}
      action="Remove it"
      isDanger
      act={(reason) => removeTenant(tenant.tenant_id, reason)}
      said={`Tenant ${tenant.tenant_id} is removed.`}
      does="It leaves this list, with its limits. It is refused while the tenant has jobs."
      {...end}
    />
  );
}
