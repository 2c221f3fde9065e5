import { useState } from "preact/hooks";
import type { Saga } from "../../../ojs/replies/saga-replies.ts";
import type { SagaTimeout } from "../../../ojs/replies/wire-replies.ts";
import { useResource } from "../../api/resource.ts";
import { compensateSaga, readSaga } from "../../api/sagas-and-timeouts.ts";
import { href } from "../../state/router.ts";
import { whyNot } from "../../state/session.ts";
import { ActionForm } from "../../ui/action-form.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Button, CopyId } from "../../ui/button.tsx";
import { Callout } from "../../ui/callout.tsx";
import { Card, Facts, PageHead } from "../../ui/card.tsx";
import { Icon } from "../../ui/icon.tsx";
import { JsonTree } from "../../ui/json-tree.tsx";
import { Shown } from "../../ui/shown.tsx";
import { Time } from "../../ui/time.tsx";
import { useForm } from "../../ui/use-form.ts";
import { sagaLook } from "../sagas/page.tsx";
import { TimeoutForm, type TimeoutFormName } from "../timeouts/timeout-forms.tsx";
import { Steps } from "./steps.tsx";

export function Page({ params }: { readonly params: Readonly<Record<string, string>> }) {
  const { type = "", id = "" } = params;
  const saga = useResource(`saga ${type} ${id}`, (signal) => readSaga(type, id, signal), { live: 3_000 });
  return (
    <Shown of={saga} what={`Saga ${id}`} offers={`the saga ${id} of type ${type}`}>
      {(data) => <Details saga={data.saga} onChange={saga.reload} />}
    </Shown>
  );
}

function Details({ saga, onChange }: { readonly saga: Saga; readonly onChange: () => void }) {
  const { type, id } = saga;
  return (
    <>
      <PageHead
        title={id}
        tab={`Saga ${id}`}
        above={
          <nav class="crumb" aria-label="Where you are">
            <a href={href("sagas")}>Sagas</a>
            <Icon name="right" small />
            <a href={href("sagas", { type })}>{type}</a>
          </nav>
        }
        beside={<Badge look={sagaLook(saga)} pill />}
        below={
          <>
            Started <Time at={saga.started_at} />, changed <Time at={saga.changed_at} />, version{" "}
            {saga.version}.
          </>
        }
      />
      <CompensationNote saga={saga} onChange={onChange} />
      <div class="pair">
        <Pending saga={saga} onChange={onChange} />
        <Card title="State">
          <div class="pad stack-gap">
            <Facts
              of={[
                ["Id", <CopyId key="id" id={id} />],
                ["Completed", saga.completed_at && <Time at={saga.completed_at} as="when" />],
              ]}
            />
            <JsonTree value={saga.state} what="the state" />
          </div>
        </Card>
      </div>
      <Steps key={`${type} ${id}`} saga={saga} />
    </>
  );
}

/** How its steps are taken back, and what an operator can do about it. */
function CompensationNote({ saga, onChange }: { readonly saga: Saga; readonly onChange: () => void }) {
  const [isAsking, setAsking] = useState(false);
  const { type, id, undos = [], compensation } = saga;
  const failed = compensation?.failed ?? null;
  if (saga.completed_at !== null || (undos.length === 0 && !compensation)) return null;
  const names = undos.map(({ name }) => name).reverse();
  const canAct = !compensation || failed !== null;
  return (
    <Callout tone={failed ? "force" : "wait"}>
      <div class="grow">
        <p>
          <b>
            {failed
              ? "An undo has failed for good."
              : compensation
                ? "It is being taken back."
                : "It can be taken back."}
          </b>{" "}
          {failed?.error}
        </p>
        <p class="t3 small">Undos, in the order in which they run: {names.join(", ") || "none"}</p>
      </div>
      {canAct && (
        <Button small kind="danger" whyNot={whyNot("operate")} onClick={() => setAsking(true)}>
          {failed ? "Try again…" : "Take back…"}
        </Button>
      )}
      {isAsking && (
        <ActionForm
          title={failed ? `Go on to take ${id} back` : `Take ${id} back`}
          action={failed ? "Try the undo again" : "Run its undos"}
          isDanger
          act={(reason) => compensateSaga(type, id, reason)}
          said={`${id} is being taken back.`}
          does="Its pending timeouts are revoked and its undos run, the last one first. It completes after them, and cannot go on."
          onClose={() => setAsking(false)}
          onDone={() => {
            setAsking(false);
            onChange();
          }}
        />
      )}
    </Callout>
  );
}

function Pending({ saga, onChange }: { readonly saga: Saga; readonly onChange: () => void }) {
  const { form, open, end } = useForm<{ readonly timeout: SagaTimeout; readonly name: TimeoutFormName }>(
    onChange,
  );
  const why = whyNot("operate");
  return (
    <Card
      title="Pending timeouts"
      note={String(saga.pending.length)}
      aside={<a href={href("timeouts")}>All that are due</a>}
    >
      {saga.pending.length === 0 ? (
        <p class="pad t2">
          {saga.completed_at ? "None: it has completed." : "None: only a message wakes it."}
        </p>
      ) : (
        <ul class="lines">
          {saga.pending.map((timeout) => (
            <li key={timeout.id}>
              <span class="two">
                <b>{timeout.name}</b>
                <small>{timeout.key === null ? "no key" : `key ${timeout.key}`}</small>
              </span>
              <span class="t2 nowrap">
                {timeout.due_at === undefined ? (
                  "due later"
                ) : (
                  <>
                    <Time at={timeout.due_at} />, <Time at={timeout.due_at} as="when" />
                  </>
                )}
              </span>
              <span class="push rowf">
                <Button small whyNot={why} onClick={() => open({ timeout, name: "reschedule" })}>
                  Reschedule…
                </Button>
                <Button small kind="danger" whyNot={why} onClick={() => open({ timeout, name: "revoke" })}>
                  Revoke…
                </Button>
              </span>
            </li>
          ))}
        </ul>
      )}
      {form && (
        <TimeoutForm
          name={form.name}
          ids={[form.timeout.id]}
          what={form.timeout.name}
          dueAt={form.timeout.due_at}
          {...end}
        />
      )}
    </Card>
  );
}
