import { useState } from "preact/hooks";
import type { Webhook } from "../../../ojs/replies/settings-replies.ts";
import type { Page as PageOf } from "../../../ojs/replies/wire-replies.ts";
import { usePage } from "../../api/resource.ts";
import { readWebhooks } from "../../api/settings.ts";
import { go, href, hrefWith, query } from "../../state/router.ts";
import { whyNot } from "../../state/session.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Callout, Empty } from "../../ui/callout.tsx";
import { PageHead } from "../../ui/card.tsx";
import { countText } from "../../ui/format.ts";
import { PagedTable } from "../../ui/paged-table.tsx";
import { Commands, Shown } from "../../ui/shown.tsx";
import { type Column, NameLink } from "../../ui/table.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { Time } from "../../ui/time.tsx";
import { Deliveries } from "./deliveries.tsx";
import { NewForm, SecretDialog } from "./webhook-forms.tsx";
import { shortUrl, webhookLook, webhookTrouble } from "./webhook-look.ts";

/** Endpoints that receive events, and what was sent to them. */
export function Page() {
  const tab = query.value.get("tab") === "deliveries" ? "deliveries" : "endpoints";
  const [isNew, setNew] = useState(false);
  const [made, setMade] = useState<{ readonly id: string; readonly secret?: string } | null>(null);
  const open = (id: string) => go(href(`webhooks/${id}`));
  return (
    <>
      <PageHead title="Webhooks" below="Endpoints outside that receive events: signed, and at least once.">
        <Button kind="primary" icon="plus" whyNot={whyNot("operate")} onClick={() => setNew(true)}>
          Subscribe…
        </Button>
      </PageHead>
      <Tabs
        label="Webhooks"
        current={tab}
        tabs={[
          { id: "endpoints", title: "Endpoints", href: href("webhooks") },
          { id: "deliveries", title: "Deliveries", href: hrefWith({ tab: "deliveries", cursor: null }) },
        ]}
      />
      {tab === "deliveries" ? <Deliveries /> : <Endpoints />}
      {isNew && (
        <NewForm
          onClose={() => setNew(false)}
          onDone={(done) => {
            setNew(false);
            if (done.secret === undefined) open(done.id);
            else setMade(done);
          }}
        />
      )}
      {made?.secret !== undefined && <SecretDialog secret={made.secret} onClose={() => open(made.id)} />}
    </>
  );
}

function Endpoints() {
  const webhooks = usePage("webhooks", readWebhooks, 6_000);
  return (
    <Shown of={webhooks} what="The list" offers="webhooks">
      {(page) => <List page={page} />}
    </Shown>
  );
}

function List({ page }: { readonly page: PageOf<Webhook> }) {
  return (
    <PagedTable
      label="Webhooks"
      page={page}
      columns={COLUMNS}
      idOf={({ id }) => id}
      hrefOf={({ id }) => href(`webhooks/${id}`)}
      below={(webhook) => {
        const trouble = webhookTrouble(webhook);
        return trouble === undefined ? null : <Callout tone="soft">{trouble}</Callout>;
      }}
      empty={
        <Empty icon="webhooks" title="No endpoint receives events">
          <p>Subscribe an endpoint here, or with a command:</p>
          <Commands
            lines={["curfew webhooks add https://example.com/hooks/jobs --event job.failed job.discarded"]}
          />
        </Empty>
      }
    />
  );
}

const filterWords = ({ filter }: Webhook) =>
  [...(filter?.queues ?? []).map((name) => `queue ${name}`), ...(filter?.job_types ?? [])].join(", ");

const COLUMNS: readonly Column<Webhook>[] = [
  {
    id: "url",
    title: "Endpoint",
    phone: "title",
    class: "c-wide",
    render: (webhook) => (
      <span class="two">
        <NameLink href={href(`webhooks/${webhook.id}`)} title={shortUrl(webhook.url)}>
          {shortUrl(webhook.url)}
        </NameLink>
        {webhook.filter && <small class="clip">only {filterWords(webhook)}</small>}
      </span>
    ),
  },
  {
    id: "state",
    title: "State",
    phone: "side",
    render: (webhook) => <Badge look={webhookLook(webhook)} />,
  },
  {
    id: "events",
    title: "Events",
    class: "c-tags",
    render: ({ events }) => (
      <span class="tags">
        {events.slice(0, 3).map((name) => (
          <span class="tag" key={name}>
            {name}
          </span>
        ))}
        {events.length > 3 && <span class="tag">{events.length - 3} more</span>}
      </span>
    ),
  },
  {
    id: "delivered",
    title: "Delivered",
    isNumber: true,
    render: ({ success_count }) => countText(success_count),
  },
  {
    id: "failed",
    title: "Calls failed",
    isNumber: true,
    render: ({ failure_count }) => countText(failure_count),
  },
  {
    id: "dead",
    title: "Given up",
    isNumber: true,
    render: ({ id, dead_count }) =>
      dead_count === 0 ? (
        "0"
      ) : (
        <a href={href(`webhooks/${id}`, { status: "dead" })}>{countText(dead_count)}</a>
      ),
  },
  {
    id: "last",
    title: "Last delivery",
    isNumber: true,
    phone: "hide",
    class: "t2 nowrap",
    render: ({ last_delivery_at }) => <Time at={last_delivery_at} />,
  },
];
