import { useState } from "preact/hooks";
import type { Webhook, WebhookTest } from "../../../ojs/replies/settings-replies.ts";
import { useResource } from "../../api/resource.ts";
import { readWebhook, testWebhook } from "../../api/settings.ts";
import { go, href } from "../../state/router.ts";
import { whyNot } from "../../state/session.ts";
import { toast } from "../../state/toasts.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button, CopyButton } from "../../ui/button.tsx";
import { Callout } from "../../ui/callout.tsx";
import { Card, Crumb, Facts, PageHead } from "../../ui/card.tsx";
import { countText, durationText, isoText, plural } from "../../ui/format.ts";
import { JsonTree } from "../../ui/json-tree.tsx";
import { Shown } from "../../ui/shown.tsx";
import { Time } from "../../ui/time.tsx";
import { Deliveries } from "../webhooks/deliveries.tsx";
import { SecretDialog, WEBHOOK_FORMS, type WebhookFormName } from "../webhooks/webhook-forms.tsx";
import { shortUrl, webhookLook, webhookTrouble } from "../webhooks/webhook-look.ts";

export function Page({ params }: { readonly params: Readonly<Record<string, string>> }) {
  const id = params.id ?? "";
  const webhook = useResource(`webhook ${id}`, (signal) => readWebhook(id, signal), { live: 3_000 });
  return (
    <Shown of={webhook} what="The subscription">
      {({ subscription }) => <Details webhook={subscription} onChange={webhook.reload} />}
    </Shown>
  );
}

function Details({ webhook, onChange }: { readonly webhook: Webhook; readonly onChange: () => void }) {
  const [form, setForm] = useState<WebhookFormName | null>(null);
  const [secret, setSecret] = useState<string>();
  const [test, setTest] = useState<WebhookTest | "running">();
  const Form = form && WEBHOOK_FORMS[form];
  const trouble = webhookTrouble(webhook);
  const run = async () => {
    setTest("running");
    const result = await testWebhook(webhook.id);
    setTest(result.ok ? result.data : undefined);
    if (!result.ok) toast(result.error.message, { kind: "failed" });
    onChange();
  };
  return (
    <>
      <Head webhook={webhook} onForm={setForm} onTest={() => void run()} isTesting={test === "running"} />
      {trouble !== undefined && <Callout tone="force">{trouble}</Callout>}
      {test !== undefined && test !== "running" && <Tested test={test} />}
      <div class="pair">
        <Counts webhook={webhook} />
        <About webhook={webhook} />
      </div>
      <h2 class="section">Deliveries</h2>
      <Deliveries webhook={webhook.id} />
      {Form && (
        <Form
          webhook={webhook}
          onClose={() => setForm(null)}
          onDone={(done) => {
            setForm(null);
            setSecret(done.secret);
            if (done.isGone) go(href("webhooks"));
            else onChange();
          }}
        />
      )}
      {secret !== undefined && <SecretDialog secret={secret} onClose={() => setSecret(undefined)} />}
    </>
  );
}

interface HeadProps {
  readonly webhook: Webhook;
  readonly onForm: (form: WebhookFormName) => void;
  readonly onTest: () => void;
  readonly isTesting: boolean;
}

function Head({ webhook, onForm, onTest, isTesting }: HeadProps) {
  const why = whyNot("operate");
  return (
    <PageHead
      title={shortUrl(webhook.url)}
      tab="Webhook"
      above={<Crumb href={href("webhooks")}>Webhooks</Crumb>}
      beside={<Badge look={webhookLook(webhook)} pill />}
      below={
        <>
          <span class="mono">{webhook.id}</span> <CopyButton text={webhook.id} what="the id" />
        </>
      }
    >
      <Button kind="primary" icon="play" whyNot={why} busy={isTesting} onClick={onTest}>
        Call it once
      </Button>
      <Button whyNot={why} onClick={() => onForm("change")}>
        Change…
      </Button>
      <Button whyNot={why} onClick={() => onForm("rotate")}>
        New secret…
      </Button>
      <Button whyNot={why} onClick={() => onForm("switch")}>
        {webhook.active ? "Switch off…" : "Switch on…"}
      </Button>
      <Button kind="danger" whyNot={why} onClick={() => onForm("delete")}>
        Delete…
      </Button>
    </PageHead>
  );
}

/** What the endpoint answered to the test event. */
function Tested({ test }: { readonly test: WebhookTest }) {
  const took = durationText(test.response_time_ms);
  const body = test.response_body.trim();
  return (
    <Callout tone={test.success ? "done" : "soft"}>
      <div class="grow">
        <p>
          <b>{test.status_code === null ? "No answer." : `It answered ${test.status_code} after ${took}.`}</b>{" "}
          {test.error ?? (test.success ? "Calls arrive." : "Only 2xx counts as delivered.")}
        </p>
        {body !== "" && <p class="code anywhere">{body.slice(0, 400)}</p>}
      </div>
    </Callout>
  );
}

function Counts({ webhook }: { readonly webhook: Webhook }) {
  const { success_count, failure_count, dead_count, last_delivery_at, last_failure_at, last_error } = webhook;
  return (
    <Card title="How it goes">
      <div class="pad">
        <Facts
          of={[
            ["Delivered", countText(success_count)],
            ["Calls failed", countText(failure_count)],
            ["Given up", countText(dead_count)],
            ["Last delivery", <Time key="t" at={last_delivery_at} />],
            ["Last failure", last_failure_at !== null && <Time key="t" at={last_failure_at} />],
            ["Last error", last_error !== null && <span class="anywhere">{last_error}</span>],
          ]}
        />
      </div>
    </Card>
  );
}

function About({ webhook }: { readonly webhook: Webhook }) {
  const { url, events, filter, ordered, batch, timeout, retry, metadata, header_names, created_at } = webhook;
  const has = Object.keys(metadata).length > 0;
  return (
    <Card title="What it gets">
      <div class="pad stack-gap">
        <Facts
          of={[
            ["URL", <span class="mono anywhere">{url}</span>],
            ["Events", <span class="mono anywhere">{events.join(" ")}</span>],
            ["Queues", filter?.queues?.join(", ")],
            ["Types", filter?.job_types?.join(", ")],
            ["Order", ordered ? "events of one job one after the other" : "as fast as possible"],
            [
              "Together",
              batch &&
                `up to ${batch.max_events} events with one call, after ${isoText(batch.max_wait)} at the latest`,
            ],
            ["Own headers", header_names.length > 0 && header_names.join(", ")],
            ["A call may take", durationText(timeout * 1_000)],
            [
              "Tries",
              `${plural(retry.max_attempts, "call")}, with ${retry.delays.map(isoText).join(", ")} between them`,
            ],
            ["Subscribed", <Time key="t" at={created_at} as="when" />],
          ]}
        />
        {has && <JsonTree value={metadata} what="the metadata" />}
      </div>
    </Card>
  );
}
