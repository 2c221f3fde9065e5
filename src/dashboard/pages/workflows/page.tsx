import type { Page as PageOf, Workflow } from "../../../ojs/replies/wire-replies.ts";
import { readWorkflows } from "../../api/operations.ts";
import { useResource } from "../../api/resource.ts";
import { now } from "../../state/clock.ts";
import { href, hrefWith, query } from "../../state/router.ts";
import { Badge } from "../../ui/badge.tsx";
import { Empty } from "../../ui/callout.tsx";
import { PageHead } from "../../ui/card.tsx";
import { FilterBar } from "../../ui/filter-bar.tsx";
import { countdownText, durationText, shortId } from "../../ui/format.ts";
import { Meter } from "../../ui/meter.tsx";
import { PagedTable } from "../../ui/paged-table.tsx";
import { Commands, Shown } from "../../ui/shown.tsx";
import { type Column, NAME_COLUMN, NameLink } from "../../ui/table.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { Time } from "../../ui/time.tsx";
import { KINDS, nameOf, WORKFLOW_LOOKS } from "./workflow-look.ts";

const STATES = ["running", "completed", "failed", "cancelled"] as const;

export function Page() {
  const state = query.value.get("state");
  const cursor = query.value.get("cursor");
  const order = query.value.get("order") === "asc" ? "asc" : "desc";
  const workflows = useResource(
    `workflows ${state} ${order} ${cursor}`,
    (signal) => readWorkflows({ state, order, cursor }, signal),
    { live: 3_000 },
  );
  const to = (value: string | null) => hrefWith({ state: value, cursor: null });
  return (
    <>
      <PageHead
        title="Workflows"
        below={`Jobs that belong together, the ${order === "asc" ? "oldest" : "newest"} first.`}
      />
      <Tabs
        label="States"
        current={state ?? "all"}
        tabs={[
          { id: "all", title: "All", href: to(null) },
          ...STATES.map((one) => ({ id: one, title: WORKFLOW_LOOKS[one].word, href: to(one) })),
        ]}
      />
      <FilterBar
        drops={["cursor"]}
        filters={[{ name: "order", label: "order", options: [["asc", "oldest first"]] }]}
      />
      <Shown of={workflows} what="The list">
        {(page) => <List page={page} isFiltered={state !== null} />}
      </Shown>
    </>
  );
}

function List({ page, isFiltered }: { readonly page: PageOf<Workflow>; readonly isFiltered: boolean }) {
  return (
    <PagedTable
      label="Workflows"
      page={page}
      isCounted
      columns={COLUMNS}
      idOf={({ id }) => id}
      hrefOf={({ id }) => href(`workflows/${id}`)}
      empty={
        <Empty icon="workflows" title={isFiltered ? "No workflow is in this state here" : "No workflows yet"}>
          {!isFiltered && (
            <>
              <p>Start one from your code:</p>
              <Commands
                lines={[
                  "await engine.workflows.start(",
                  "  chain([step(fetchOrder, { id }), group([step(bill, { id }), step(pack, { id })]), step(ship, { id })]),",
                  ");",
                ]}
              />
            </>
          )}
        </Empty>
      }
    />
  );
}

const COLUMNS: readonly Column<Workflow>[] = [
  {
    id: "name",
    title: "Workflow",
    ...NAME_COLUMN,
    render: (workflow) => (
      <span class="two">
        <NameLink href={href(`workflows/${workflow.id}`)} title={nameOf(workflow)}>
          {workflow.name ?? shortId(workflow.id)}
        </NameLink>
        <small class={workflow.name ? "id" : undefined}>
          {workflow.name ? shortId(workflow.id) : "no name"}
        </small>
      </span>
    ),
  },
  {
    id: "state",
    title: "State",
    phone: "side",
    render: ({ state }) => <Badge look={WORKFLOW_LOOKS[state]} />,
  },
  {
    id: "kind",
    title: "Kind",
    hide: "narrow",
    phone: "hide",
    class: "t2",
    render: ({ type }) => <span title={KINDS[type]}>{type}</span>,
  },
  { id: "steps", title: "Steps", isNumber: true, phone: "hide", render: ({ steps_total }) => steps_total },
  {
    id: "failure",
    title: "Why it failed",
    phone: "line",
    class: "c-why t2",
    render: ({ failure }) =>
      failure && (
        <span class="clip" title={failure.message ?? failure.reason}>
          {failure.message ?? failure.reason}
        </span>
      ),
  },
  { id: "deadline", title: "Deadline", render: (workflow) => <Deadline workflow={workflow} /> },
  {
    id: "took",
    title: "Took",
    isNumber: true,
    phone: "hide",
    render: ({ created_at, completed_at }) => (
      <span class="nowrap">
        {durationText(
          (completed_at === null ? now.value : Date.parse(completed_at)) - Date.parse(created_at),
        )}
      </span>
    ),
  },
  {
    id: "started",
    title: "Started",
    isNumber: true,
    class: "t2 nowrap",
    render: ({ created_at }) => <Time at={created_at} />,
  },
];

export function Deadline({ workflow }: { readonly workflow: Workflow }) {
  const { deadline, state, created_at } = workflow;
  if (deadline === null) return <span class="t3">none</span>;
  if (state !== "running") return <Time at={deadline} as="when" />;
  const end = Date.parse(deadline);
  const left = end - now.value;
  const share = (now.value - Date.parse(created_at)) / Math.max(1, end - Date.parse(created_at));
  return (
    <span class="stack-meter">
      <span class="nowrap">{left > 0 ? countdownText(left) : "over"}</span>
      <Meter
        share={share}
        label={`${Math.round(share * 100)} % of its time is used`}
        tone={share > 0.8 ? "warn" : undefined}
      />
    </span>
  );
}
