import type { Tenant } from "../../../ojs/replies/settings-replies.ts";
import type { Page as PageOf } from "../../../ojs/replies/wire-replies.ts";
import { usePage } from "../../api/resource.ts";
import { readTenants } from "../../api/settings.ts";

import { chooseTenant, visit, whyNot } from "../../state/session.ts";
import { toast } from "../../state/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Empty } from "../../ui/callout.tsx";
import { countText } from "../../ui/format.ts";
import { ListPage } from "../../ui/list-page.tsx";
import { Meter } from "../../ui/meter.tsx";
import { PagedTable } from "../../ui/paged-table.tsx";
import { Commands } from "../../ui/shown.tsx";
import { ACTIONS_COLUMN, type Column, NAME_COLUMN } from "../../ui/table.tsx";
import { Time } from "../../ui/time.tsx";
import { useForm } from "../../ui/use-form.ts";
import { periodText } from "../limits/page.tsx";
import { LimitsForm, RemoveForm } from "./tenant-forms.tsx";

type FormName = "limits" | "remove";

/** Who shares this server without seeing the others, what they use, and what they may use. */
export function Page() {
  const tenants = usePage("tenants", readTenants, 6_000);
  return (
    <ListPage
      title="Tenants"
      below="Each sees nothing of the others. Limits hold over all queues of a tenant."
      of={tenants}
      offers="tenants"
      action="New tenant…"
      form={(end) => <LimitsForm {...end} />}
    >
      {(page) => <List page={page} onChange={tenants.reload} />}
    </ListPage>
  );
}

function List({ page, onChange }: { readonly page: PageOf<Tenant>; readonly onChange: () => void }) {
  const { form, open, end } = useForm<{ readonly tenant: Tenant; readonly name: FormName }>(onChange);
  return (
    <>
      <PagedTable
        label="Tenants"
        page={page}
        columns={columnsOf((tenant, name) => open({ tenant, name }))}
        idOf={({ tenant_id }) => tenant_id}
        empty={
          <Empty icon="tenants" title="No tenants">
            <p>Everything here belongs to nobody in particular. A key can be bound to a tenant:</p>
            <Commands lines={["curfew keys new --role admin --name acme --tenant acme --file keys.json"]} />
          </Empty>
        }
      />
      {page.items.length > 0 && whyNotLook() !== undefined && <p class="t3 small">{whyNotLook()}</p>}
      {form?.name === "limits" && <LimitsForm tenant={form.tenant} {...end} />}
      {form?.name === "remove" && <RemoveForm tenant={form.tenant} {...end} />}
    </>
  );
}

/** What is used of a bound; where there is none, what is used. */
function Used({
  used,
  most,
  what,
}: {
  readonly used: number;
  readonly most: number | null;
  readonly what: string;
}) {
  if (most === null)
    return (
      <span>
        {countText(used)} <span class="t3">no bound</span>
      </span>
    );
  return (
    <span class="stack-meter">
      <span class="nowrap">
        {countText(used)} of {countText(most)}
      </span>
      <Meter
        share={used / most}
        label={`${countText(used)} of ${countText(most)} ${what}`}
        tone={used >= most ? "bad" : used >= 0.8 * most ? "warn" : undefined}
      />
    </span>
  );
}

const bytesText = (bytes: number) =>
  bytes >= 1_048_576
    ? `${Math.round(bytes / 104_857.6) / 10} MB`
    : bytes >= 1_024
      ? `${Math.round(bytes / 1_024)} kB`
      : `${bytes} B`;

function columnsOf(onForm: (tenant: Tenant, name: FormName) => void): Column<Tenant>[] {
  return [
    {
      id: "name",
      title: "Tenant",
      ...NAME_COLUMN,
      render: ({ tenant_id, created_at }) => (
        <span class="two">
          <span class="name clip">{tenant_id}</span>
          <small>
            since <Time at={created_at} as="when" />
          </small>
        </span>
      ),
    },
    {
      id: "running",
      title: "Run",
      render: ({ jobs, limits }) => (
        <Used used={jobs?.active ?? 0} most={limits.max_concurrency} what="jobs run" />
      ),
    },
    {
      id: "waiting",
      title: "Wait",
      render: ({ jobs, limits }) => (
        <Used used={jobs?.waiting ?? 0} most={limits.max_queue_depth} what="jobs wait" />
      ),
    },
    {
      id: "rate",
      title: "New jobs",
      class: "nowrap",
      render: ({ limits: { max_enqueue_rate: rate } }) =>
        rate === null ? (
          <span class="t3">no bound</span>
        ) : (
          `${countText(rate.limit)} per ${periodText(rate.period)}`
        ),
    },
    {
      id: "payload",
      title: "A payload",
      class: "nowrap",
      render: ({ limits: { max_payload_bytes: most } }) =>
        most === null ? <span class="t3">no bound</span> : `up to ${bytesText(most)}`,
    },
    actionsColumn(onForm),
  ];
}

function actionsColumn(onForm: (tenant: Tenant, name: FormName) => void): Column<Tenant> {
  return {
    ...ACTIONS_COLUMN,
    render: (tenant) => (
      <span class="rowf end">
        <Button
          small
          label={`Look at it: ${tenant.tenant_id}`}
          whyNot={whyNotLook()}
          onClick={() => void look(tenant.tenant_id)}
        >
          Look at it
        </Button>
        <Button
          small
          label={`Limits of ${tenant.tenant_id}`}
          whyNot={whyNot("operate")}
          onClick={() => onForm(tenant, "limits")}
        >
          Limits…
        </Button>
        <Button
          small
          kind="danger"
          label={`Remove ${tenant.tenant_id}`}
          whyNot={whyNot("operate")}
          onClick={() => onForm(tenant, "remove")}
        >
          Remove…
        </Button>
      </span>
    ),
  };
}

/** Only a login remembers which tenant it looks at. */
function whyNotLook(): string | undefined {
  const session = visit.value.state === "known" ? visit.value.session : null;
  if (session?.can_log_out) return undefined;
  return session?.authentication === "nobody"
    ? "The server has no keys. Start it with some (curfew keys new), and log in with one to look at the pages of a tenant."
    : "Log in with a key to look at the pages of a tenant.";
}

async function look(tenant: string): Promise<void> {
  const result = await chooseTenant(tenant);
  if (!result.ok) toast(result.error.message, { kind: "failed" });
}
