import { DELIVERY_STATES, type Delivery } from "../../../ojs/replies/settings-replies.ts";
import { useResource } from "../../api/resource.ts";
import { readDeliveries } from "../../api/settings.ts";
import { href, query } from "../../state/router.ts";
import { whyNot } from "../../state/session.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Empty } from "../../ui/callout.tsx";
import { FilterBar } from "../../ui/filter-bar.tsx";
import { plural, shortId } from "../../ui/format.ts";
import { Pager } from "../../ui/pager.tsx";
import { Shown } from "../../ui/shown.tsx";
import { ACTIONS_COLUMN, type Column, NAME_COLUMN, Table } from "../../ui/table.tsx";
import { Time } from "../../ui/time.tsx";
import { useForm } from "../../ui/use-form.ts";
import { RedeliverForm } from "./webhook-forms.tsx";
import { DELIVERY_LOOKS, deliveryWords } from "./webhook-look.ts";

/** The log of deliveries, of one subscription or of all. */
export function Deliveries({ webhook }: { readonly webhook?: string }) {
  const status = query.value.get("status");
  const cursor = query.value.get("cursor");
  const log = useResource(
    `deliveries ${webhook} ${status} ${cursor}`,
    (signal) => readDeliveries({ ...(webhook !== undefined && { webhook }), status }, cursor, signal),
    { live: cursor === null ? 3_000 : false },
  );
  const { form: repeated, open, end } = useForm<string>(log.reload);
  return (
    <>
      <FilterBar
        drops={["cursor"]}
        filters={[
          {
            name: "status",
            label: "state",
            options: DELIVERY_STATES.map((state) => [state, DELIVERY_LOOKS[state].word]),
          },
        ]}
      />
      <Shown of={log} what="The log">
        {({ items, pagination }) =>
          items.length === 0 && pagination.next_cursor === null ? (
            <div class="tablewrap">
              <Empty
                icon="webhooks"
                title={status === null ? "Nothing was sent yet" : "No delivery is in this state"}
              >
                {status === null && (
                  <p>A delivery is here as soon as an event happens that somebody asked for.</p>
                )}
              </Empty>
            </div>
          ) : (
            <>
              <Table
                label="Deliveries"
                rows={items}
                columns={columnsOf(open)}
                idOf={({ id }) => id}
                below={failuresOf}
              />
              <Pager shown={items.length} next={pagination.next_cursor} older="Older" />
            </>
          )
        }
      </Shown>
      {repeated !== null && <RedeliverForm id={repeated} {...end} />}
    </>
  );
}

/** Earlier failures of a delivery that needed several calls. */
function failuresOf({ errors }: Delivery) {
  if (errors.length < 2) return null;
  return (
    <details>
      <summary class="t3">All {plural(errors.length, "call that failed", "calls that failed")}</summary>
      <ol class="lines">
        {errors.map(({ attempt, occurred_at, code, message }) => (
          <li key={attempt}>
            <span class="t3 nowrap">
              call {attempt}, <Time at={occurred_at} as="clock" />
            </span>
            <code>{code}</code>
            <span class="anywhere">{message}</span>
          </li>
        ))}
      </ol>
    </details>
  );
}

function columnsOf(onRepeat: (id: string) => void): Column<Delivery>[] {
  return [
    {
      id: "events",
      title: "Events",
      ...NAME_COLUMN,
      render: ({ id, events, event_types, redelivery_of }) => {
        const job = events.length === 1 ? (events[0]?.job_id ?? null) : null;
        const name = event_types.join(", ");
        return (
          <span class="two">
            {job === null ? (
              <span class="name clip" title={name}>
                {name}
              </span>
            ) : (
              <a class="name clip" href={href(`jobs/${job}`)} title={`${name} of job ${job}`}>
                {name}
              </a>
            )}
            <span class="id" title={id}>
              {events.length > 1 ? `${plural(events.length, "event")}, ` : ""}
              {shortId(id.replace(/^del_/, ""))}
              {redelivery_of === null ? "" : ", sent again"}
            </span>
          </span>
        );
      },
    },
    {
      id: "state",
      title: "State",
      phone: "side",
      render: ({ status }) => <Badge look={DELIVERY_LOOKS[status]} />,
    },
    ...outcomeColumns(onRepeat),
  ];
}

function outcomeColumns(onRepeat: (id: string) => void): Column<Delivery>[] {
  return [
    {
      id: "outcome",
      title: "What came of it",
      phone: "line",
      class: "c-wide",
      render: (delivery) => (
        <span class="clip" title={deliveryWords(delivery)}>
          {deliveryWords(delivery)}
        </span>
      ),
    },
    { id: "calls", title: "Calls", isNumber: true, render: ({ attempts }) => attempts },
    {
      id: "next",
      title: "Next call",
      class: "t2 nowrap",
      render: ({ next_attempt_at }) => <Time at={next_attempt_at} />,
    },
    {
      id: "created",
      title: "Event",
      isNumber: true,
      phone: "hide",
      class: "t2 nowrap",
      render: ({ created_at }) => <Time at={created_at} />,
    },
    {
      ...ACTIONS_COLUMN,
      render: ({ id, status }) => (
        <span class="rowf end">
          <Button
            small
            label={`Send again ${id}`}
            whyNot={status === "calling" ? "It is being called." : whyNot("operate")}
            onClick={() => onRepeat(id)}
          >
            Send again…
          </Button>
        </span>
      ),
    },
  ];
}
