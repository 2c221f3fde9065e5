import { useState } from "preact/hooks";
import { useResource } from "../../api/resource.ts";
import { readTenants } from "../../api/settings.ts";
import type { Page as PageOf } from "../../api/wire.ts";
import type { Tenant } from "../../api/wire-settings.ts";
import { query } from "../../state/router.ts";
import { chooseTenant, visit, whyNot } from "../../state/session.ts";
import { toast } from "../../state/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Empty } from "../../ui/callout.tsx";
import { PageHead } from "../../ui/card.tsx";
import { countText } from "../../ui/format.ts";
import { Meter } from "../../ui/meter.tsx";
import { Pager } from "../../ui/pager.tsx";
import { Commands, Shown } from "../../ui/shown.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { Time } from "../../ui/time.tsx";
import { periodText } from "../limits/page.tsx";
import { LimitsForm, RemoveForm } from "./tenant-forms.tsx";

type FormName = "limits" | "remove";

/** Who shares this server without seeing the others, what they use, and what they may use. */
export function Page() {
  const cursor = query.value.get("cursor");
  const [isNew, setNew] = useState(false);
  const tenants = useResource(`tenants ${cursor}`, (signal) => readTenants(cursor, signal), { live: 6_000 });
  return (
    <>
      <PageHead
        title="Tenants"
        below="Each sees nothing of the others. Limits hold over all queues of a tenant."
      >
        <Button icon="plus" whyNot={whyNot("operate")} onClick={() => setNew(true)}>
          New tenant…
        </Button>
      </PageHead>
      <Shown of={tenants} what="The list" offers="tenants">
        {(page) => <List page={page} onChange={tenants.reload} />}
      </Shown>
      {isNew && (
        <LimitsForm
          onClose={() => setNew(false)}
          onDone={() => {
            setNew(false);
            tenants.reload();
          }}
        />
      )}
    </>
  );
}

function List({ page, onChange }: { readonly page: PageOf<Tenant>; readonly onChange: () => void }) {
  const [form, setForm] = useState<{ readonly tenant: Tenant; readonly name: FormName } | null>(null);
  const { items, pagination } = page;
  const close = () => setForm(null);
  const done = () => {
    setForm(null);
    onChange();
  };
  if (items.length === 0)
    return (
      <div class="tablewrap">
        <Empty icon="tenants" title="No tenants">
          <p>Everything here belongs to nobody in particular. A key can be bound to a tenant:</p>
          <Commands lines={["curfew keys new --role admin --name acme --tenant acme --file keys.json"]} />
        </Empty>
      </div>
    );
  return (
    <>
      <Table
        label="Tenants"
        rows={items}
        columns={columnsOf((tenant, name) => setForm({ tenant, name }))}
        idOf={({ tenant_id }) => tenant_id}
      />
      <Pager shown={items.length} next={pagination.next_cursor} />
      {whyNotLook() !== undefined && <p class="t3 small">{whyNotLook()}</p>}
      {form?.name === "limits" && <LimitsForm tenant={form.tenant} onClose={close} onDone={done} />}
      {form?.name === "remove" && <RemoveForm tenant={form.tenant} onClose={close} onDone={done} />}
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
      phone: "title",
      class: "c-name",
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
    id: "actions",
    title: <span class="sr">Actions</span>,
    phone: "line",
    class: "c-actions",
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
